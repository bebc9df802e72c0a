"""Whether a function may be cut as its definition says: tried, on random arrays, before a program may rely on it.

For each kind of call (ranks, dtypes, static parameters) every index that can be placed is placed over 2 and over 4 blocks;
the function runs on each block, the blocks are put together, and what comes out is compared with the function on whole
arrays: its results, and the gradients of a function that has them. A definition without `@` says all of an op, so it is
run too. No device is needed. What differs is the counter-example:

    error: `softmax` is not what its definition says: `d` cannot be placed
    note: over 2 blocks: x f32[8, 12] in parts of f32[8, 6]; the parts of `out` side by side
    note: out[0, 0] is 0.0421 at once, and 0.0817 in blocks
    help: write `d:` for a dim that must be whole
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import lcm
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np
from jax import Array
from jax.core import ShapedArray

from ...dialects.definitions.dims import Sites, names
from ...dialects.definitions.tilings import bind
from ...dialects.definitions.tree import Definition, Formal, Var
from ...dialects.dtypes import short
from ...dialects.errors import Error
from ...dialects.monoids import MONOIDS
from ...dialects.params import ParamsAttr
from ...dialects.reference.evaluate import evaluate
from ...rewrites.program.program import Rows, Signature
from ..inputs.literals import Written
from ..jax_private import eval_context, jax, jnp
from ..ops.params import Foreign, decode, encode
from ..ops.python_lowerings import equations
from .blocks import Blocks
from .kept_together import kept_together
from .kernels import without_steps
from .samples import LARGEST, Type, arrays, candidates

Results: TypeAlias = Callable[[Sequence[Array]], list[list[Array]]]
"""Of operands: for each result an array, or several that should be equal."""
Derived: TypeAlias = Callable[[Sequence[Array]], tuple[list[list[Array]], Sequence[Array]]]
"""Of operands: the results, and the gradients of the floating operands."""

Run: TypeAlias = Callable[[Mapping[str, Any], Sequence[Array], Sequence[Type]], Sequence[Array]]
"""(static parameters, operands, types of the results) -> results."""

COUNTS = (2, 4)
"""Over how many blocks an index is placed."""
MOST = 16
"""Over no more blocks than this an index is placed that others stand behind."""

# What is compiled runs once.
_QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@dataclass(frozen=True, slots=True)
class Tried:
    """What a definition was tried on: types of operands and results, and per index the sizes of the blocks it was cut to."""

    ins: list[Type]
    outs: list[Type]
    sizes: dict[int, set[int]]


_accepted: dict[object, Tried] = {}
CANDIDATES: dict[str, Candidate] = {}
"""What was tried and accepted, by the op's name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function, and the definition that its author wrote for it."""

    definition: Definition
    written: Written
    run: Run

    @property
    def title(self) -> str:
        return self.definition.title

    def refuse(self, variable: str, notes: Sequence[str], ways: Iterable[str] = (), size: int = 0, larger: int = 0) -> NoReturn:
        """Raises the counter-example, with ways out; for blocks of `size` that are too small, those that are `larger` agree."""
        bare = variable.rstrip(".")
        helps = [f"write `{variable}:` for {'dims' if bare != variable else 'a dim'} that must be whole", *ways]
        problem = "cannot be placed"
        if larger:
            problem = f"cannot be cut into blocks of {size}"
            helps.insert(0, kept_together(self.written.text, self.definition, variable, larger))
        title = f"`{self.title}` is not what its definition says: `{variable}` {problem}"
        self.written.fail(bare, title, notes=tuple(notes), helps=tuple(helps))


class Unfit(Exception):
    """The function does not take these shapes, or, if `variable` is said, no blocks of them: larger ones may do."""

    def __init__(self, problem: str, variable: str = "") -> None:
        super().__init__(problem)
        self.variable = variable


def accept(candidate: Candidate, params: Mapping[str, object], ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
    """Raises Error unless the function agrees with its definition on calls of this kind: avals and static parameters."""
    _tried_on(candidate, params, _types(ins), _types(outs))


def accept_blocks(
    candidate: Candidate, params: Mapping[str, object], ins: list[Type], outs: list[Type], sizes: Mapping[int, int]
) -> None:
    """Raises Error unless the function agrees with its definition on blocks of so many values of these indices.

    Blocks that are made of others were tried with them: 6 of 2. A kernel with steps of its own may not take smaller ones.
    """
    tried = _tried_on(candidate, params, ins, outs)
    for index, size in sizes.items():
        known = tried.sizes.get(index, set[int]())
        if known and not any(size % each == 0 for each in known):
            _try_block(candidate, params, tried, index, size)
            known.add(size)


def _try_block(candidate: Candidate, params: Mapping[str, object], tried: Tried, index: int, size: int) -> None:
    """Tries blocks of one size on arrays that are made of blocks which the function takes."""
    foreign = Foreign()
    stored = encode(candidate.definition.name, params, foreign, candidate.definition.dropped)
    base = _Trial(candidate, stored, tuple(foreign.values), tried.ins, tried.outs)
    extent = min(lcm(size, each) for each in tried.sizes[index])
    trial = _Trial(candidate, stored, base.foreign, *base.resized(index, extent), larger=min(tried.sizes[index]))
    with eval_context(), jax.default_matmul_precision("highest"):
        try:
            problem = trial.blocks(index, extent // size, *trial.whole(trial.arrays))
        except Unfit as error:
            problem = str(error)
    if problem:
        candidate.refuse(trial.variable(index), (problem,), size=size, larger=trial.larger)


def _tried_on(candidate: Candidate, params: Mapping[str, object], ins: list[Type], outs: list[Type]) -> Tried:
    """What the definition was tried on for calls of this kind, once."""
    foreign = Foreign()
    stored = encode(candidate.definition.name, params, foreign, candidate.definition.dropped)
    types = ins, outs
    kind = tuple((dtype, tuple(n == 1 for n in shape)) for side in types for dtype, shape in side)
    key = (candidate.definition.name, stored, tuple(foreign.values), kind)
    if key in _accepted:
        return _accepted[key]
    unfit: Unfit | None = None
    with eval_context(), jax.default_matmul_precision("highest"):
        for small in candidates(candidate.definition, stored, *types):
            try:
                trial = _Trial(candidate, stored, tuple(foreign.values), *small)
                trial.run()
            except Unfit as error:
                unfit = error
            else:
                CANDIDATES[candidate.definition.name] = candidate
                return _accepted.setdefault(key, Tried(*small, trial.sizes))
    return _untried(candidate, stored, unfit)


def _untried(candidate: Candidate, stored: ParamsAttr, unfit: Unfit | None) -> NoReturn:
    """Raises why no arrays were found on which the function agrees."""
    if unfit is not None and unfit.variable:
        extents = (f"or say which parameter is its extent: `extents {name} = |{unfit.variable}|`" for name in _numbers(stored))
        candidate.refuse(unfit.variable, (str(unfit),), extents)
    notes = (str(unfit),) if unfit else (f"its arrays have more than {LARGEST:,} elements",)
    helps = ("`example=` gives other shapes to try it on", "`check=False` takes your word for it")
    candidate.written.fail(
        candidate.title, f"the definition of `{candidate.title}` could not be tried", notes=notes, helps=helps
    )


def _numbers(params: ParamsAttr) -> Iterator[str]:
    """The static parameters that could be extents."""
    return (name for name, value in params.items() if isinstance(value, int) and not isinstance(value, bool))


def _types(avals: Sequence[ShapedArray]) -> list[Type]:
    return [(aval.dtype.name, tuple(map(int, aval.shape))) for aval in avals]


@dataclass(eq=False)
class _Trial:
    """A function on whole arrays of some types and on blocks of them."""

    candidate: Candidate
    params: ParamsAttr
    foreign: tuple[object, ...]
    ins: list[Type]
    outs: list[Type]
    differentiable: bool = field(default=True, init=False)
    known: Any = field(default=(None, None), init=False)
    sizes: dict[int, set[int]] = field(default_factory=dict[int, set[int]], init=False)
    """Per index the sizes of the blocks that agree with the whole."""
    larger: int = 0
    """Where small blocks are tried: the size of larger ones, which agree."""

    @cached_property
    def signature(self) -> Signature:
        return Signature(bind(self.candidate.definition, self.params, self.ins, self.outs))

    def run(self) -> None:
        whole, pulled = self.whole(self.arrays)
        if "@" not in self.candidate.written.text:
            self.compare_with_text(whole)
        for index, info in enumerate(self.signature.instance.indices):
            counts, least = [count for count in COUNTS if info.extent % count == 0], self.least(index, info.extent)
            failures: list[str] = []
            for count in dict.fromkeys((*counts, *least)):
                try:
                    failures.append(self.blocks(index, count, whole, pulled))
                except Error:
                    # 3 rows of a kernel that takes two in a step: a plan may never cut so, and `accept_blocks` looks.
                    if least or not info.extent // count % 2 or self.sizes.get(index) is None:
                        raise
            # One that is too short for the function is no fault, but where the text says what stays together it is.
            if failures and (all(failures) or (least and failures[-1])):
                raise Unfit(failures[0] or failures[-1], self.variable(index))

    def least(self, index: int, extent: int) -> list[int]:
        """Over how many blocks an index is placed in the end, if others stand behind it: then these are all that a block is."""
        tables = (*self.signature.operand_at, *self.signature.result_at)
        joined = any(at[index][1] > 1 for at in tables if index in at)
        return [extent] if joined and COUNTS[-1] < extent <= MOST else []

    def function(self, operands: Sequence[Array], outs: Sequence[Type]) -> Sequence[Array]:
        """The function on arrays that may be blocks; the static parameters that are extents follow from their types."""
        name = self.candidate.definition.name
        shapes = tuple(tuple(x.shape) for x in operands)
        own = decode(name, self.params, shapes, tuple(outs), self.foreign)
        results = self.candidate.run(own, operands, outs)
        got = _types([jax.typeof(x) for x in results])
        if got != list(outs):
            raise Unfit(
                f"on {_listed(self.candidate, operands)} it gives {_shown(got)}, and its definition says {_shown(outs)}"
            )
        return results

    @cached_property
    def arrays(self) -> list[Array]:
        below = {ids: info.extent for info in self.signature.instance.indices for ids, _, _ in info.lookups}
        for positive in (False, True):
            made = cast("list[Array]", arrays(self.ins, below, positive))
            if all(np.isfinite(np.asarray(x, np.complex128)).all() for x in self.whole(made)[0]):
                break
        return made

    def tried(self, function: Derived, operands: Sequence[Array]) -> tuple[list[list[Array]], Sequence[Array]]:
        """The function of these operands, compiled; what it raises is a reason to try other shapes."""
        try:
            options = _QUICK if jax.default_backend() == "cpu" else None
            traced = jax.jit(function, compiler_options=options).trace(operands)
            if any(without_steps(eqn) for eqn in equations(traced.jaxpr)):
                raise Unfit(f"on {_listed(self.candidate, operands)} it runs a kernel that has no steps")
            # A callback raises when it runs.
            return jax.block_until_ready(traced.lower().compile()(operands))
        except (Unfit, Error):
            raise
        except Exception as error:
            first = str(error).strip().splitlines() or [""]
            raise Unfit(f"on {_listed(self.candidate, operands)} it raises {type(error).__name__}: {first[0]:.200}") from error

    def whole(self, operands: list[Array]) -> tuple[list[Array], list[Array]]:
        """The results at once, and the gradients, if it has any."""
        if operands is not self.known[0]:

            def once(operands: Sequence[Array]) -> list[list[Array]]:
                return [[x] for x in self.function(operands, self.outs)]

            try:
                found = self.tried(self.with_gradient(once), operands)
            except Unfit:
                self.differentiable = False
                found = self.tried(_alone(once), operands)
            self.known = operands, ([x for (x,) in found[0]], list(found[1]))
        return self.known[1]

    def with_gradient(self, function: Results) -> Derived:
        """The results, and the gradients of the floating operands for fixed weights of the floating results."""
        weights = [x if _is_float(x.dtype) else None for x in arrays(self.outs, {}, positive=True)]
        at = self.floats

        def both(operands: Sequence[Array]) -> tuple[list[list[Array]], Sequence[Array]]:
            def weighed(*given: Array) -> tuple[Array, list[list[Array]]]:
                full = list(operands)
                for n, x in zip(at, given, strict=True):
                    full[n] = x
                results = function(full)
                pairs = zip(results, weights, strict=True)
                terms = (jnp.sum(x[0] * weight.astype(x[0].dtype)) for x, weight in pairs if weight is not None)
                return cast(Array, sum((term.astype("float32") for term in terms), jnp.zeros(()))), results

            gradient = jax.grad(weighed, tuple(range(len(at))), has_aux=True)
            pulled, results = gradient(*(operands[n] for n in at))
            return results, pulled

        return both

    @property
    def floats(self) -> list[int]:
        return [n for n, (dtype, _) in enumerate(self.ins) if _is_float(jnp.dtype(dtype))]

    def blocks(self, index: int, count: int, whole: list[Array], pulled: list[Array]) -> str:
        """Compares one placement; why the function does not take such blocks, if it does not."""
        blocks = Blocks(self.signature, tuple(self.outs), index, count)

        def cut(operands: Sequence[Array]) -> list[list[Array]]:
            return blocks.run(self.function, operands)

        try:
            # The gradient tells nothing new of more blocks.
            derived = self.differentiable and count == COUNTS[0]
            made, gradients = self.tried(self.with_gradient(cut) if derived else _alone(cut), self.arrays)
        except Unfit as error:
            return f"over {count} blocks, {error}"
        for position, (name, parts) in enumerate(zip(self.results(), made, strict=True)):
            for part in parts:
                if (at := first_difference(whole[position], part)) is not None:
                    self.refuse(blocks, name, position, at, whole[position], part)
        for n, one, other in zip(self.floats, pulled, gradients, strict=False):
            if (at := first_difference(one, other)) is not None:
                self.refuse(blocks, f"gradient of {self.operands()[n]}", None, at, one, other)
        self.sizes.setdefault(index, set()).add(blocks.size)
        return ""

    def resized(self, index: int, extent: int) -> tuple[list[Type], list[Type]]:
        """The types with another extent of one index."""
        old = self.signature.instance.indices[index].extent

        def dim(n: int, row: tuple[tuple[int, int, int], ...]) -> int:
            return n // old * extent if any(at == index for at, _, _ in row) else n

        def sized(types: Sequence[Type], dims: Sequence[Rows]) -> list[Type]:
            return [(dtype, tuple(map(dim, shape, rows))) for (dtype, shape), rows in zip(types, dims, strict=True)]

        return sized(self.ins, self.signature.operand_dims), sized(self.outs, self.signature.result_dims)

    def compare_with_text(self, whole: list[Array]) -> None:
        """A definition without `@` is evaluated, and the function must give the same."""
        told = evaluate(self.candidate.definition.name, self.params, cast("list[np.ndarray]", self.arrays), self.outs)
        for name, one, other in zip(self.results(), whole, told, strict=True):
            if (at := first_difference(one, other)) is not None:
                title = f"`{self.candidate.title}` is not what its definition says"
                note = f"{_element(name, at)} is {_number(one[at])} by the function, and {_number(other[at])} by the definition"
                given = f"on {_listed(self.candidate, self.arrays)}"
                help = "`@` stands for what index notation does not say: `out[i] = @(x[i, j:])`"
                self.candidate.written.fail(self.candidate.title, title, notes=(given, note), helps=(help,))

    def operands(self) -> list[str]:
        return _spelled(self.candidate.definition.operands, len(self.ins))

    def results(self) -> list[str]:
        return _spelled(self.candidate.definition.results, len(self.outs))

    def refuse(self, blocks: Blocks, name: str, result: int | None, at: tuple[int, ...], one: Array, other: Array) -> None:
        """The counter-example."""
        variable = self.variable(blocks.index)
        cut = [
            f"{operand} {_shown([(dtype, shape)])} in parts of {_shown([(dtype, blocks.local(shape, table[blocks.index]))])}"
            for operand, (dtype, shape), table in zip(self.operands(), self.ins, self.signature.operand_at, strict=True)
            if blocks.index in table
        ]
        how = "" if result is None else f"; the parts of `{name}` {blocks.says(result)}"
        notes = (
            f"over {blocks.count} blocks: {', '.join(cut) or 'no operand is cut'}{how}",
            f"{_element(name, at)} is {_number(one[at])} at once, and {_number(other[at])} in blocks",
        )
        monoid = blocks.info.monoid
        ways = () if monoid is None else (f"or say how the parts are put together, if not by `{MONOIDS[monoid].fold}`",)
        self.candidate.refuse(variable, notes, ways, blocks.size, self.larger)

    def variable(self, index: int) -> str:
        """The name of an index in the text."""
        shapes = [shape for _, shape in self.ins], [shape for _, shape in self.outs]
        definition = self.candidate.definition.with_arity(len(self.ins), len(self.outs))
        for site in Sites(definition, self.params, *shapes).all:
            table = self.signature.operand_at[site.array] if site.array >= 0 else self.signature.result_at[-1 - site.array]
            for number, _, dim in site.placed:
                term = site.terms[number]
                if index in table and table[index][0] == dim and names(term):
                    return f"{names(term)[0]}.." if isinstance(term, Var) and term.many else names(term)[0]
        return self.candidate.title


def _alone(function: Results) -> Derived:
    """Results without gradients."""

    def results(operands: Sequence[Array]) -> tuple[list[list[Array]], Sequence[Array]]:
        return function(operands), ()

    return results


def _spelled(formals: Sequence[Formal], count: int) -> list[str]:
    """Names of so many arrays: a variadic one's are numbered."""
    variadic = sum(each.variadic for each in formals)
    many = (count - len(formals)) // max(1, variadic) + 1
    return [name for each in formals for name in ([f"{each.name}{k}" for k in range(many)] if each.variadic else [each.name])]


def _listed(candidate: Candidate, operands: Sequence[Array]) -> str:
    names = _spelled(candidate.definition.operands, len(operands))
    return ", ".join(f"{name} {_shown([(x.dtype.name, tuple(x.shape))])}" for name, x in zip(names, operands, strict=True))


def _shown(types: Sequence[Type]) -> str:
    return ", ".join(f"{short(dtype)}[{', '.join(map(str, shape))}]" for dtype, shape in types)


def _element(name: str, at: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, at))}]"


def _number(value: object) -> str:
    return f"{np.asarray(value).item():.6g}" if np.asarray(value).dtype.kind in "fV" else f"{np.asarray(value).item()}"


def _is_float(dtype: object) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))


_TOLERANCE = {8: 1e-9, 4: 2e-4, 2: 3e-2, 1: 0.3}
"""By the bytes of a floating number: how far sums in another order may lie apart, of the largest element."""


def first_difference(one: Array | np.ndarray, other: Array | np.ndarray) -> tuple[int, ...] | None:
    """Where two arrays first differ by more than their numbers' precision; None if nowhere."""
    exact = one.dtype.kind in "iub"
    left, right = (np.asarray(x).astype(np.int64 if exact else np.complex128) for x in (one, other))
    if exact:
        apart = left != right
    else:
        bytes = one.dtype.itemsize // (2 if one.dtype.kind == "c" else 1)
        largest = np.max(np.abs(left[np.isfinite(left)]), initial=0.0) or 1.0
        with np.errstate(invalid="ignore"):
            apart = ~(
                (np.abs(left - right) <= _TOLERANCE[bytes] * largest) | (left == right) | (np.isnan(left) & np.isnan(right))
            )
    found = np.argwhere(apart)
    return tuple(map(int, found[0])) if len(found) else None
