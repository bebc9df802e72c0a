"""An op that a user defines: a function of arrays, and the definition that says how it can be partitioned.

In a jaxpr it is one equation with its own primitive. Its type, lowering, batching and derivatives come from the function:
tracing traces the function, `vmap` maps it, and `grad` uses its rules, including those of `jax.custom_vjp`.

    { lambda ; a:f32[8,64] b:f32[64]. let c:f32[8,64] = rms_norm a b in (c,) }
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
from jax import Array, ShapeDtypeStruct, dtypes
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive

from ...dialects.definitions import printer
from ...dialects.definitions.dim_terms import groups
from ...dialects.definitions.parse import parse_definitions
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Definition, Group, Reading, Var, Whole, names, titled, with_reads
from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error
from ...dialects.lax_verify import disagreement
from ...dialects.params import ParamsAttr
from ...dialects.reference.user_functions import FUNCTIONS
from ...dialects.types import ArrayType
from ..inputs.string_literals import Written
from ..jax_private import PyTreeDef, Tracer, ad, batching, eval_context, jax, mlir, shaped_abstractify, tree
from ..ops.params import ArrayLike, Foreign, decode, encode
from ..ops.primitives import remember
from ..ops.prng_keys import aval_text
from .candidate import DefinitionCandidate
from .verify import accept

RunFunction = Callable[..., object]
"""(operands, in the definition's order, **static parameters) -> a tree of results."""
Leaves = Callable[..., list[Array]]
"""Like `Run`, but returns the leaves of the results."""
FlatTypes = tuple[list[ShapedArray], PyTreeDef]
"""The types and the tree structure of the results."""


@dataclass(eq=False)
class Op:
    """A defined op. `run` is its function; `primitive` represents it in a jaxpr: its own primitive, or a third party's."""

    definition: Definition
    written: Written
    run: RunFunction
    primitive: Any
    traced: dict[object, FlatTypes] = field(default_factory=dict[object, FlatTypes])
    mapped: dict[tuple[bool, ...], Leaves] = field(default_factory=dict[tuple[bool, ...], Leaves])
    checked: bool = True
    """Whether the definition is tried before a program may contain the op."""
    own: Written | None = None
    """For an op that `vmap` made: the text that the user wrote."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def title(self) -> str:
        """The name that the user wrote."""
        return self.definition.title

    def leaves(self, *arrays: Array, **params: object) -> list[Array]:
        """Runs the function and returns the leaves of its results."""
        return tree.tree_leaves(self.run(*arrays, **params))

    def call(self, arrays: Sequence[Array], params: Mapping[str, object]) -> object:
        """Calls the op as one equation; returns the results in the function's tree structure."""
        _, structure = self.trace([jax.typeof(each) for each in arrays], params)
        return tree.tree_unflatten(structure, self.primitive.bind(*arrays, **params))

    def trace(self, avals: Sequence[ShapedArray], params: Mapping[str, object]) -> FlatTypes:
        """The types and the tree structure of the results. Raises Error if they do not match the definition."""
        key = (jax.config.jax_enable_x64, *avals, *params.items())
        if key not in self.traced:
            structs = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
            self.check_ranks(avals)
            closed, shapes = self.traced_once(structs, params)
            outs = list(closed.out_avals)
            self.check_types(avals, outs, params)
            self.traced[key] = outs, tree.tree_structure(shapes)
        return self.traced[key]

    def check_ranks(self, avals: Sequence[ShapedArray]) -> None:
        """Raises Error for an operand whose rank does not match the definition, before the function is called."""
        bound = self.definition.with_arity(len(avals), len(self.definition.results))
        for read in () if self.definition.front else self.definition.reads():
            free = sum(bool(groups(term)) or (isinstance(term, Whole) and term.many) for term in read.dims)
            named = len(read.dims) - free
            for at in bound.positions(read.array):
                rank = len(avals[at].shape)
                if rank < named or (rank > named and not free):
                    wanted = f"{'at least ' if free else ''}{counted(named, 'dim')}"
                    title = (
                        f"operand `{read.array}` of `{self.title}` is {aval_text(avals[at])}, but its definition names {wanted}"
                    )
                    self.written.fail(read.array, title, "`i..` stands for any number of dims, including none")

    def traced_once(self, structs: Sequence[ShapeDtypeStruct], params: Mapping[str, object]) -> tuple[ClosedJaxpr, object]:
        """The jaxpr of the function and the types of its results. Raises Error for a function that cannot run in parts."""
        try:
            closed, shapes = jax.make_jaxpr(partial(self.run, **params), return_shape=True)(*structs)
        except TypeError as error:
            if "valid JAX type" not in str(error):
                raise
            self.written.fail(self.title, f"`{self.title}` must return arrays", "return arrays, one for each result")
        if closed.effects:
            kind = type(next(iter(closed.effects))).__name__
            title = f"`{self.title}` has an effect (`{kind}`), but it may run once on every block"
            other = "for a callback that only computes, use `jax.pure_callback`"
            self.written.fail(self.title, title, "remove the effect: a defined op is a function of its operands", other)
        for const in closed.consts:
            if isinstance(const, Tracer):
                title = f"`{self.title}` closes over a value that is being traced, {aval_text(jax.typeof(const))}"
                self.written.fail(self.title, title, "pass it as an operand that the definition names")
        return closed, shapes

    def check_types(self, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, object]) -> None:
        variadic = any(formal.variadic for formal in self.definition.results)
        wanted = len(self.definition.results)
        if len(outs) != wanted and not (variadic and len(outs) >= wanted - 1):
            told = ", ".join(f"`{formal.name}`" for formal in self.definition.results)
            title = f"`{self.title}` returns {counted(len(outs), 'array')}, but its definition has {wanted} ({told})"
            help = "name each result left of `=`: `out[..], more[..] = @(...)`"
            self.written.fail(self.definition.results[-1].name, title, help)
        if problem := disagreement(self.name, encode(params, Foreign(), self.definition), _types(avals), _types(outs)):
            help = f"its results are {_listed(outs)} of {_listed(avals)}: say so left and right of `=`"
            indices = {name for read in self.definition.reads() for term in read.dims for name in names(term)}
            said = [word for word in re.findall(r"`(\w+)`", problem) if word in indices]
            self.written.fail((*said, self.title)[0], problem.replace(f"lax.{self.name}", self.title), help)

    def abstract(self, *avals: ShapedArray, **params: object) -> list[ShapedArray]:
        return self.trace(avals, params)[0]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: object) -> tuple[list[Array], list[Array]]:
        """Computes the function's JVP, along the operands that have a tangent."""
        along = [at for at, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]
        function = self.along(along, primals, params)
        results, pushed = jax.jvp(function, [primals[at] for at in along], [tangents[at] for at in along])
        # A result that has no derivative, such as an index, has a tangent of type float0.
        pairs = zip(results, pushed, strict=True)
        return results, [ad.Zero(jax.typeof(x).to_tangent_aval()) if t.dtype == dtypes.float0 else t for x, t in pairs]

    def transpose(self, cotangents: Sequence[Array], *args: Array, **params: object) -> list[Array | None]:
        """Transposes the function, which is linear in the unknown operands."""
        along = [at for at, arg in enumerate(args) if ad.is_undefined_primal(arg)]
        function = self.along(along, args, params)
        known = [ad.instantiate_zeros(each) if type(each) is ad.Zero else each for each in cotangents]
        found = jax.linear_transpose(function, *(args[at].aval for at in along))(known)
        given = dict(zip(along, found, strict=True))
        return [given.get(at) for at in range(len(args))]

    def along(self, some: Sequence[int], args: Sequence[Array], params: Mapping[str, object]) -> Leaves:
        """The function of only some operands; the others are fixed."""

        def function(*given: Array) -> list[Array]:
            full = {**dict(enumerate(args)), **dict(zip(some, given, strict=True))}
            return self.leaves(*full.values(), **params)

        return function

    def batch(self, args: Sequence[Array], dims: Sequence[int | None], **params: object) -> tuple[list[Array], list[int]]:
        """Batches the op: `vmap` adds a leading index to the mapped arrays, so the mapped op has a definition too."""
        batched = tuple(any(dims[at] is not None for at in group) for group in self.formals(len(args)))
        size = next(arg.shape[dim] for arg, dim in zip(args, dims, strict=True) if dim is not None)
        rows = zip(args, dims, self.axes(batched, len(args)), strict=True)
        fronted = [arg if axis is None else batching.bdim_at_front(arg, dim, size) for arg, dim, axis in rows]
        if batched not in self.mapped:
            self.mapped[batched] = self.vmapped(batched)
        results = self.mapped[batched](*fronted, **params)
        return results, [0] * len(results)

    def formals(self, count: int) -> list[range]:
        bound = self.definition.with_arity(count, len(self.definition.results))
        return [bound.positions(formal.name) for formal in self.definition.operands]

    def axes(self, batched: tuple[bool, ...], count: int) -> list[int | None]:
        """For each of `count` operands the dim that is mapped, or None. `batched` says of each formal whether it is mapped."""
        return [0 if each else None for group, each in zip(self.formals(count), batched, strict=True) for _ in group]

    def vmapped(self, batched: tuple[bool, ...]) -> Leaves:
        """The op with one more index, or a plain `vmap` if the definition has clauses that refer to dims by number."""

        def run(*arrays: Array, **params: object) -> object:
            return jax.vmap(partial(self.run, **params), in_axes=self.axes(batched, len(arrays)))(*arrays)

        if self.definition.at or self.definition.front or self.definition.ravel or self.definition.sizes:
            return lambda *arrays, **params: tree.tree_leaves(run(*arrays, **params))
        names = [formal.name for formal, each in zip(self.definition.operands, batched, strict=True) if each]
        title = f"vmap_{self.title}" + ("" if all(batched) else f"_{'_'.join(names)}")
        written = self.written.renamed(printer.definition(_mapped(self.definition, names, title)))
        return make_op(
            written, run, self.checked, self.name.replace(self.title, title), self.own or self.written
        ).primitive.bind

    def interpret(self, inputs: Sequence[np.ndarray], params: ParamsAttr, outs: Sequence[ArrayLike]) -> list[np.ndarray]:
        """Runs the function on NumPy arrays, for the interpreter."""
        if "foreign(" in params.text:
            raise Error(f"`{self.title}` has a parameter without text, {params.text}, so the interpreter cannot run it")
        own = decode(self.name, params, tuple(each.shape for each in inputs), tuple(outs))
        with eval_context():
            return [np.asarray(each) for each in self.leaves(*cast("Sequence[Array]", inputs), **own)]

    def accept(self, params: Mapping[str, object], ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
        """Raises Error, with a counter-example, unless the function can be partitioned as the definition says."""
        written = self.own or self.written
        run = DefinitionCandidate(self.definition, written, lambda params, arrays, _: self.leaves(*arrays, **params))
        accept(run, params, ins, outs)

    def try_on(self, arrays: Sequence[object], params: Mapping[str, object] | None = None) -> None:
        """Tries the definition on arrays or structs like these. Raises Error if it is refused."""
        avals = [shaped_abstractify(each) for each in arrays]
        self.accept(params or {}, avals, self.trace(avals, params or {})[0])


def _listed(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(map(aval_text, avals))


def _types(avals: Sequence[ShapedArray]) -> tuple[ArrayType, ...]:
    return tuple(ArrayType.whole(aval.dtype.name, tuple(map(int, aval.shape))) for aval in avals)


def _mapped(definition: Definition, operands: Sequence[str], title: str) -> Definition:
    """The definition with one more leading index on these operands and on the results.

    norm(x, w)  out[i..] = @(x[i..], w[i..])   -->   vmap_norm_x(x, w)  out[n, i..] = @(x[n, i..], w[i..])
    """
    taken = {name for each in (*definition.targets, *definition.reads()) for term in each.dims for name in names(term)}
    taken |= {formal.name for formal in (*definition.operands, *definition.results)}
    index = Group((Var(next(name for name in ("n", *(f"n{k}" for k in range(99))) if name not in taken)),))

    def mapped(read: Reading) -> Reading:
        return replace(read, dims=(index, *read.dims))

    targets = tuple(map(mapped, definition.targets))
    body = with_reads(definition.body, lambda read: mapped(read) if read.array in operands else read)
    return replace(definition, name=title, targets=targets, body=body)


def definition_of_text(written: Written) -> Definition:
    """The one definition of a text. Raises Error with its location in the user's file."""
    try:
        found = parse_definitions(written.text)
    except Error as error:
        written.again(error, _instead(written.text, error))
    if len(found) != 1:
        second = [*found, ""][1]
        title = f"expected one definition, got {len(found)}"
        written.fail(second, title, "call `pt.define` once for each", label="the second one")
    (definition,) = found.values()
    read_too = {read.array for read in definition.reads()}
    for formal in definition.operands:
        if formal.name not in read_too:
            help = "name it among the arguments of `@`, or leave it out if it is not an array"
            written.fail(formal.name, f"`{formal.name}` is an operand, but nothing right of `=` reads it", help)
    _check_wholes(definition, written)
    return definition


def _instead(source: str, error: Error) -> tuple[str, ...]:
    """The help for a line that begins with its results, or for a dim without a name; none for other errors."""
    if re.match(r"\s*\w+\s*\[", source):
        return ("a line begins with the op's name and its operands: `name(x)   out[i..] = @(x[i..])`",)
    at = error.location
    if at is not None and re.search(r"[\[,]\s*$", at.text[: at.column - 1]) and ":" in error.label:
        return ("an unpartitioned dim needs a name: `w[k:]`",)
    return ()


def _check_wholes(definition: Definition, written: Written) -> None:
    """Raises Error for a name that is an index in one array and an unpartitioned dim (`d:`) in another."""
    terms = [(term, read.array) for read in (*definition.targets, *definition.reads()) for term in read.dims]
    whole = {term.name: array for term, array in terms if isinstance(term, Whole)}
    for term, array in terms:
        for name in names(term):
            if not isinstance(term, Whole) and name in whole:
                title = f"`{name}` is an index in `{array}`, but an unpartitioned dim in `{whole[name]}`"
                written.fail(name, title, f"write `{name}:` in both", "or give the unpartitioned dim another name")


def added(written: Written, run: RunFunction, primitive: Primitive, checked: bool, name: str, own: Written | None = None) -> Op:
    """Registers a primitive as an op of this name, so that planning, lowering and the interpreter know it."""
    op = Op(definitions.add(replace(definition_of_text(written), name=name)), written, run, primitive, checked=checked, own=own)
    if "@" in written.text:
        FUNCTIONS[op.name] = op.interpret
    remember(primitive, op.name, op.accept if checked else None)
    return op


def make_op(written: Written, run: RunFunction, checked: bool, name: str, own: Written | None = None) -> Op:
    """Makes an op with its own primitive. For an op that `vmap` makes, `own` is the text that the user wrote."""
    primitive: Any = Primitive(titled(name))
    primitive.multiple_results = True
    op = added(written, run, primitive, checked, name, own)
    primitive.def_impl(op.leaves)
    primitive.def_abstract_eval(op.abstract)
    ad.primitive_jvps[primitive] = op.jvp
    ad.primitive_transposes[primitive] = op.transpose
    batching.primitive_batchers[primitive] = op.batch
    mlir.register_lowering(primitive, mlir.lower_fun(op.leaves, multiple_results=True))
    return op
