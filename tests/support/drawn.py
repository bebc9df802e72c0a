"""Random calls of an op, drawn from the text of its definition: `calls(name)` is a strategy for hypothesis.

The definition says which index runs along which dim of which array, and which dims its parameters name. So an extent is drawn
for each index, and a number for each dim that a parameter names. All other parameters are those of an example call in
`calls`. Ops with parameters other than dims and extents have their own strategy in `drawn_by_hand`.

    dot_general(lhs[b.., m.., k..], rhs[b.., n.., k..])   -->   f16[3, 8, 1], f16[8, 3], (((0,), (1,)), ((1,), (0,)))
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from call import Call
from calls import CALLS
from hypothesis import reject, strategies as st
from jax.extend.core import jaxprs_in_params

from partita.compiler.ops.params import Foreign, encode, op_name
from partita.compiler.ops.primitives import find_primitive
from partita.dialects.definitions.dim_terms import groups
from partita.dialects.definitions.local_params import restore
from partita.dialects.definitions.registry import definitions
from partita.dialects.definitions.syntax_tree import (
    At,
    Concat,
    Definition,
    Group,
    Param,
    Read,
    Reading,
    Var,
    Whole,
    children,
    names,
)

Array: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]

EXTENTS = (4, 1, 2, 3, 6, 8, 5)
LARGEST_RANK, LARGEST = 4, 2048
TOTAL = ("eq_to", "le_to", "lt_to")
DTYPES = ("float32", "bfloat16", "float16", "int32", "int8", "int16", "uint8", "uint32", "bool", "complex64")
extents = st.sampled_from(EXTENTS)


@dataclass(frozen=True, slots=True)
class Example:
    """The operands and parameters with which an example call binds a primitive."""

    params: Mapping[str, Any]
    ins: tuple[Any, ...]


@cache
def example(name: str) -> Example:
    """The equation of this op in the first example call that has one."""
    for call in CALLS:
        if call.op == name:
            for eqn in _equations(jax.make_jaxpr(call.function)(*call.args).jaxpr):
                if op_name(eqn.primitive.name) == name:
                    return Example(eqn.params, tuple(var.aval for var in eqn.invars))
    raise KeyError(name)


def _equations(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _equations(inner)


def derivable(definition: Definition) -> bool:
    """Whether shapes follow from extents of indices: all terms are indices, and every unpartitioned dim has a name."""
    if definition.front is not None or definition.ravel is not None or definition.sizes:
        return False
    terms = [term for read in (*_reads(definition.body), *definition.targets) for term in read.dims]
    known = {at.variable for at in definition.at}
    read = {term.name for each in _reads(definition.body) for term in each.dims if isinstance(term, Whole)}
    wholes = {term.name for term in terms if isinstance(term, Whole)}
    return all(isinstance(term, Group | Whole | Concat) for term in terms) and wholes <= known & read


@st.composite
def restacked(draw: st.DrawFn, name: str) -> Call:
    """An example call with another number of rows, whose contents stay valid for the op."""
    call = draw(st.sampled_from([call for call in CALLS if call.op == name]))
    rows = {np.shape(arg)[:1] for arg in call.args}
    if len(rows) != 1 or () in rows:
        return call
    chosen = draw(st.lists(st.integers(0, rows.pop()[0] - 1), min_size=2, max_size=8))
    args = tuple(arg[np.array(chosen)] for arg in call.args)
    try:
        jax.eval_shape(call.function, *args)
    except (TypeError, ValueError):
        return call
    return Call(name, call.function, args, f"{call.what} of {len(chosen)}")


@dataclass(slots=True)
class Sizes:
    """Extents drawn for the indices of one definition."""

    draw: st.DrawFn
    groups: dict[tuple[str, int], Shape] = field(default_factory=dict[tuple[str, int], Shape])

    def of(self, term: Any, copy: int, room: int) -> Shape:
        """The extents of the dims that a term takes."""
        match term:
            case Group((Var(name, many),)) | Whole(name, many):
                return self.group(name, 0, room if many else 1, 0 if many else 1)
            case Concat((Var(name),)):
                return self.group(name, copy, 1, 1)
            case Group(joined):
                return (prod(self.group(each.name, 0, 1, 1)[0] for each in joined),)
            case _:
                raise NotImplementedError(f"{term} has no extent of its own")

    def group(self, name: str, copy: int, most: int, least: int) -> Shape:
        if (name, copy) not in self.groups:
            count = self.draw(st.sampled_from(sorted(range(least, max(most, least) + 1), key=lambda n: abs(n - 2))))
            self.groups[name, copy] = tuple(self.draw(extents) for _ in range(count))
        return self.groups[name, copy]


@dataclass(frozen=True, slots=True)
class Signature:
    """The terms of each operand and result, by name, with variadic ones so many times."""

    definition: Definition
    operands: tuple[tuple[str, int, tuple[Any, ...]], ...]
    results: tuple[tuple[str, int, tuple[Any, ...]], ...]


def signature(definition: Definition, arity: int) -> Signature:
    reads = {read.array: read.dims for read in _reads(definition.body)}
    targets = {target.array: target.dims for target in definition.targets}
    sides: list[tuple[tuple[str, int, tuple[Any, ...]], ...]] = []
    for formals, terms in ((definition.operands, reads), (definition.results, targets)):
        sides.append(tuple((f.name, copy, terms[f.name]) for f in formals for copy in range(arity if f.variadic else 1)))
    return Signature(definition, *sides)


def _reads(expr: Any) -> Iterator[Reading]:
    if isinstance(expr, Read):
        yield expr
    for child in children(expr):
        yield from _reads(child)


@dataclass(slots=True)
class Places:
    """The dims that parameters name; drawn once for each parameter."""

    draw: st.DrawFn
    ordered: bool
    params: dict[tuple[str, tuple[str, ...]], tuple[int, ...] | int] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], "tuple[int, ...] | int"]
    )

    def array(self, name: str, at: Sequence[At], dims: Sequence[tuple[Any, Shape]]) -> Shape:
        """The shape of an array whose terms have these extents."""
        rank = sum(len(each) for _, each in dims)
        named = {each.variable: each.source for each in at if each.array in (None, name)}
        free = list(range(rank))
        shape = [0] * rank
        for term, sizes in dims:
            source = named.get(_variable(term))
            if isinstance(source, Param):
                key = (source.name, source.steps)
                if key not in self.params:
                    places = self.draw(st.permutations(free))[: len(sizes)]
                    places = sorted(places) if self.ordered else places
                    self.params[key] = tuple(places) if groups(term) or _plural(source) else places[0]
                known = self.params[key]
                for place, size in zip(known if isinstance(known, tuple) else (known,), sizes, strict=True):
                    shape[place] = size
                    free.remove(place)
        left = iter([size for term, sizes in dims if _variable(term) not in named for size in sizes])
        for place in free:
            shape[place] = next(left)
        return tuple(shape)

    def values(self) -> dict[str, Any]:
        """The parameters, with nested ones put together."""
        found: dict[str, Any] = {}
        parts: dict[str, dict[tuple[str, ...], Any]] = {}
        for (name, steps), value in self.params.items():
            if steps:
                parts.setdefault(name, {})[steps] = value
            else:
                found[name] = value
        return found | {name: _nested(known, ()) for name, known in parts.items()}


def _variable(term: Any) -> str:
    """The one variable of a term, which `at` may name."""
    known = names(term)
    return known[0] if len(known) == 1 else ""


def _plural(source: Any) -> bool:
    """Whether a parameter is a tuple although it names one dim: `axes` of argmax."""
    return source.name in ("axes", "dimensions")


def _nested(parts: Mapping[tuple[str, ...], Any], prefix: tuple[str, ...]) -> Any:
    if prefix in parts:
        return parts[prefix]
    steps = sorted({key[len(prefix)] for key in parts if key[: len(prefix)] == prefix})
    return tuple(_nested(parts, (*prefix, step)) for step in steps)


@st.composite
def derived(draw: st.DrawFn, name: str) -> Call:
    """A call of an op whose parameters are dims and extents of indices, and those of the example."""
    definition = definitions[name]
    arity = draw(st.integers(1, 3)) if any(f.variadic for f in definition.operands) else 1
    form = signature(definition, arity)
    sizes = Sizes(draw)
    _extents(form, sizes)
    places = Places(draw, draw(st.booleans()))
    ins, outs = (
        [places.array(each, definition.at, [(term, sizes.of(term, copy, 0)) for term in terms]) for each, copy, terms in side]
        for side in (form.operands, form.results)
    )
    if max(map(prod, (*ins, *outs)), default=1) > LARGEST:
        reject()
    params = {**example(name).params, **places.values()}
    params |= draw(VARIED.get(name, st.just({})))
    stored = encode(params, Foreign(), definition)
    restored = {
        key: value for key, value in restore(definition, stored, ins, [("", each) for each in outs]).items() if key in params
    }
    params |= restored
    dtypes = draw(st.sampled_from(accepted(name)))
    dtypes = (*dtypes, *(dtypes[-1] for _ in ins))[: len(ins)]
    function = bound(name, params)
    try:
        jax.eval_shape(function, *(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in zip(ins, dtypes, strict=True)))
    except (TypeError, ValueError, NotImplementedError):
        reject()
    values = [draw(arrays(name, at, shape, dtype)) for at, (shape, dtype) in enumerate(zip(ins, dtypes, strict=True))]
    return Call(name, function, tuple(values), f"{_text(params)}")


def _extents(form: Signature, sizes: Sizes) -> None:
    """Draws all groups, so that no array has more dims than arrays here may have."""
    for side in (form.results, form.operands):
        for _, copy, terms in side:
            single = sum(len(sizes.of(term, copy, 0)) for term in terms if not getattr(term, "many", False))
            room = LARGEST_RANK - single
            for term in terms:
                if getattr(term, "many", False):
                    room -= len(sizes.of(term, copy, min(room, 2 if len(terms) > 1 else 4)))


def _text(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in params.items() if value is not None)


def bound(name: str, params: Mapping[str, Any]) -> Callable[..., Any]:
    return lambda *xs: find_primitive(name).bind(*map(jnp.asarray, xs), **params)


@cache
def accepted(name: str) -> list[tuple[str, ...]]:
    """The operand dtypes for which the example's equation can be bound: the first operand's, and those that follow from it."""
    known = example(name)
    first = known.ins[0].dtype if known.ins else None
    found = [tuple(aval.dtype.name for aval in known.ins)]
    for dtype in DTYPES:
        if name in TOTAL and dtype == "complex64":
            continue  # JAX traces it, and XLA refuses: complex numbers have no total order.
        dtypes = tuple(dtype if aval.dtype == first else aval.dtype.name for aval in known.ins)
        structs = [jax.ShapeDtypeStruct(aval.shape, each) for aval, each in zip(known.ins, dtypes, strict=True)]
        try:
            jax.eval_shape(bound(name, known.params), *structs)
        except (TypeError, ValueError, NotImplementedError):
            continue
        if dtypes not in found:
            found.append(dtypes)
    return found


@st.composite
def arrays(draw: st.DrawFn, name: str, position: int, shape: Shape, dtype: str) -> Array:
    """Elements from the op's domain; their seed is drawn, so that a failure keeps them."""
    random = np.random.default_rng(draw(st.integers(0, 3)))
    low, high = DOMAINS.get((name, position)) or DOMAINS.get((name, -1)) or (-2.0, 2.0)
    match jnp.dtype(dtype).kind:
        case "b":
            return random.integers(0, 2, shape).astype(bool)
        case "c":
            return (random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape)).astype(dtype)
        case "u":
            return random.integers(*WHOLE_NUMBERS.get((name, position), (0, 1 << 8 * jnp.dtype(dtype).itemsize)), shape).astype(
                dtype
            )
        case "i":
            return random.integers(*WHOLE_NUMBERS.get((name, position), (-20, 21)), shape).astype(dtype)
        case _:
            return np.asarray(random.uniform(low, high, shape), np.float32).astype(jnp.dtype(dtype))


# Further values of parameters that are neither dims nor extents.
VARIED: Mapping[str, st.SearchStrategy[Mapping[str, Any]]] = {
    **{name: st.fixed_dictionaries({"reverse": st.booleans()}) for name in "cumsum cumprod cummax cummin cumlogsumexp".split()},
    "integer_pow": st.fixed_dictionaries({"y": st.integers(-2, 4)}),
    "reduce_precision": st.sampled_from([{"exponent_bits": 5, "mantissa_bits": 10}, {"exponent_bits": 8, "mantissa_bits": 7}]),
    "iota": st.fixed_dictionaries({"dtype": st.sampled_from([jnp.dtype(each) for each in DTYPES if each != "bool"])}),
    "argmax": st.fixed_dictionaries({"index_dtype": st.sampled_from([np.dtype(each) for each in ("int32", "int8", "uint32")])}),
    "round": st.fixed_dictionaries({"rounding_method": st.sampled_from(list(jax.lax.RoundingMethod))}),
    "convert_element_type": st.fixed_dictionaries({"new_dtype": st.sampled_from([jnp.dtype(each) for each in DTYPES])}),
}
# The domain of the elements of floating operands: by op and operand, -1 for all operands.
POSITIVE, INSIDE = (0.1, 2.0), (-0.9, 0.9)
DOMAINS: Mapping[tuple[str, int], tuple[float, float]] = {
    **{(name, -1): POSITIVE for name in "log rsqrt sqrt digamma lgamma igamma igammac igamma_grad_a".split()},
    **{(name, -1): INSIDE for name in "acos asin atanh erf_inv".split()},
    ("acosh", -1): (1.1, 3.0),
    ("log1p", -1): (-0.5, 2.0),
    ("polygamma", 0): (1.0, 1.0),
    ("polygamma", 1): (1.0, 2.0),
    ("pow", 0): POSITIVE,
    ("regularized_incomplete_beta", -1): (0.1, 0.9),
    ("zeta", 0): (2.0, 3.0),
    ("zeta", 1): POSITIVE,
    ("tan", -1): (-1.0, 1.0),
}
WHOLE_NUMBERS: Mapping[tuple[str, int], tuple[int, int]] = {
    **{(name, 1): (0, 8) for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical", "pow")},
    ("integer_pow", 0): (1, 4),
}
