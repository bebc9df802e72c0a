"""One trial of a definition: the function on global arrays of some types, and the op as devices run it with an index placed.

The trial compares results, and gradients if the function has them. A definition without `@` describes the computation
completely, so its text is evaluated too.

    softmax(x)   out[b.., d] = @(x[b.., d]),   d over 2 devices   -->   out[0, 0] is 0.0421 at once, and 0.0817 in blocks
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import cast

import numpy as np
from jax import Array

from ...dialects.definitions.dim_terms import Sites, groups
from ...dialects.definitions.requirement_terms import Lookup, Scan, Selection
from ...dialects.definitions.syntax_tree import names
from ...dialects.definitions.tilings import SubIndex, SubIndices
from ...dialects.ground.errors import Error
from ...dialects.ground.monoids import MONOIDS
from ...dialects.params import ParamsAttr
from ...dialects.reference.evaluate import evaluate
from ...rewrites.program.program import Program, Signature
from ..jax_private import QUICK, jax, jnp
from ..ops.jax_expansions import equations
from ..ops.params import decode
from .candidate import DefinitionCandidate, Unfit
from .one_op_program import program_of, run_in_blocks
from .pallas_kernels import without_steps
from .samples import Type, array_types, first_difference, random_arrays, spelled, told_apart, types_text

Results = Callable[[Sequence[Array]], list[list[Array]]]
"""Takes operands; for each result, returns an array, or several arrays that should be equal."""
Pulled = tuple[list[list[Array]], Sequence[Array]]
"""The results, and the gradients of the floating operands."""

COUNTS = (2, 4)
"""The numbers of devices over which an index is placed."""
MOST_DEVICES = 16
"""The largest number of devices tried for an index that is major in a joint dim."""


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The operands and results of a function on global arrays, and its gradients; None for a function without them."""

    operands: list[Array]
    results: list[Array]
    gradients: Sequence[Array] | None


@dataclass(eq=False)
class Trial:
    """A trial on arrays of some types. If small blocks are tried, `larger` is a block size that agrees."""

    candidate: DefinitionCandidate
    params: ParamsAttr
    foreign: tuple[object, ...]
    ins: list[Type]
    outs: list[Type]
    larger: int = 0
    sizes: dict[int, set[int]] = field(default_factory=dict[int, set[int]], init=False)
    """Index -> the block sizes that agree with the unpartitioned run."""

    @cached_property
    def program(self) -> Program:
        return program_of(self.candidate.definition.name, self.params, self.ins, self.outs)

    @property
    def signature(self) -> Signature:
        return self.program.nodes[0].signature

    def run(self) -> None:
        """Tries every index. Raises Error if the function differs, and Unfit if it does not take arrays like these."""
        # Fails first for a function that does not take such arrays at all.
        known = self.at_once
        if "@" not in self.candidate.written.text:
            self.compare_with_text(known)
        for index in range(len(self.signature.indices)):
            self.place(index)

    def place(self, index: int) -> None:
        """Tries one index over each number of devices that divides it.

        Blocks that are too short for the function are accepted, unless the definition keeps them together. A block with an odd
        number of rows may be shorter than a kernel's step: if larger blocks agree, it is tried again when a plan needs it.
        """
        extent, together = self.signature.indices[index].extent, self.kept_together(index)
        counts = dict.fromkeys(count for count in (*COUNTS, *together) if extent % count == 0)
        problems: list[Unfit] = []
        for count in counts:
            try:
                self.compare(index, count)
            except Unfit as problem:
                problems.append(problem)
            except Error:
                if together or extent // count % 2 == 0 or index not in self.sizes:
                    raise
        agreed = self.sizes.get(index, set[int]())
        if problems and (not agreed or any(extent // count not in agreed for count in together)):
            raise Unfit(str(problems[0]), self.variable(index))

    def kept_together(self, index: int) -> list[int]:
        """The number of blocks of an index that is major in a joint dim, so that each device gets one; [] for another index."""
        extent = self.signature.indices[index].extent
        tables = (*self.signature.operand_at, *self.signature.result_at)
        joined = any(at[index].minor > 1 for at in tables if index in at)
        return [extent] if joined and COUNTS[-1] < extent <= MOST_DEVICES else []

    def compare(self, index: int, count: int) -> None:
        """Compares the op over `count` devices with the function. Raises Unfit if the function does not take such blocks."""
        known = self.at_once
        cut = partial(run_in_blocks, self.program, index, count, self.function)
        # The gradient of more blocks gives no new information.
        derived = known.gradients is not None and count == COUNTS[0]
        try:
            made, gradients = self.compiled(cut, known.operands, derived)
        except Unfit as error:
            raise Unfit(f"over {count} blocks, {error}") from error
        for position, (name, parts) in enumerate(zip(self.results(), made, strict=True)):
            for part in parts:
                self.same(index, count, name, position, known.results[position], part)
        for n, one, other in zip(self.floats, known.gradients or (), gradients, strict=False):
            self.same(index, count, f"gradient of {self.operands()[n]}", None, one, other)
        self.sizes.setdefault(index, set()).add(self.signature.indices[index].extent // count)

    def same(self, index: int, count: int, name: str, result: int | None, one: Array, other: Array) -> None:
        """Raises Error with the first element that differs, if there is one."""
        if (at := first_difference(one, other)) is None:
            return
        info = self.signature.indices[index]
        parts, _ = self.resized(index, info.extent // count)
        rows = zip(self.operands(), self.ins, parts, self.signature.operand_at, strict=True)
        cut = [
            f"{each} {types_text([type])} in parts of {types_text([part])}"
            for each, type, part, table in rows
            if index in table
        ]
        how = "" if result is None else f"; the parts of `{name}` {self.put_together(index, result)}"
        blocks = f"over {count} blocks: {', '.join(cut) or 'no operand is cut'}{how}"
        notes = blocks, told_apart(name, at, one, "at once", other, "in blocks")
        ways = () if info.monoid is None else (f"or say how the parts are combined, if not by `{MONOIDS[info.monoid].fold}`",)
        self.candidate.refuse(self.variable(index), notes, ways, info.extent // count, self.larger)

    def put_together(self, index: int, result: int) -> str:
        """How a result is combined from the blocks, in words."""
        info = self.signature.indices[index]
        if index in self.signature.result_at[result]:
            return "are concatenated" if not info.parts(Scan) else "are concatenated, each combined with those before it"
        if selects := info.parts(Selection):
            return f"are merged by `{selects[0].monoid}`"
        return "are equal" if info.monoid is None else f"are combined by `{MONOIDS[info.monoid].fold}`"

    def function(self, operands: Sequence[Array], outs: Sequence[Type]) -> Sequence[Array]:
        """Runs the function on arrays that may be blocks. Static parameters that are extents follow from the arrays' types."""
        shapes = tuple(tuple(x.shape) for x in operands)
        own = decode(self.candidate.definition.name, self.params, shapes, tuple(outs), self.foreign)
        results = self.candidate.run(own, operands, outs)
        got = array_types([jax.typeof(x) for x in results])
        if got != list(outs):
            raise Unfit(f"on {self.listed(operands)} it gives {types_text(got)}, but its definition says {types_text(outs)}")
        return results

    @cached_property
    def at_once(self) -> AtOnce:
        """The function on random global arrays; on positive ones if its results are not finite otherwise."""
        below = {k.operand: info.extent for info in self.signature.indices for k in info.parts(Lookup)}
        drawn = (self.on_whole(cast("list[Array]", random_arrays(self.ins, below, positive))) for positive in (False, True))
        first = next(drawn)
        return first if all(np.isfinite(np.asarray(x, np.complex128)).all() for x in first.results) else next(drawn)

    def on_whole(self, operands: list[Array]) -> AtOnce:
        def once(operands: Sequence[Array]) -> list[list[Array]]:
            return [[x] for x in self.function(operands, self.outs)]

        try:
            results, gradients = self.compiled(once, operands, derived=True)
        except Unfit:
            results, gradients = self.compiled(once, operands, derived=False)[0], None
        return AtOnce(operands, [x for (x,) in results], gradients)

    def compiled(self, function: Results, operands: Sequence[Array], derived: bool) -> Pulled:
        """Compiles and runs a function, with gradients if `derived`.

        Raises Unfit for any exception, so that other shapes are tried.
        """

        def plain(operands: Sequence[Array]) -> Pulled:
            return function(operands), ()

        run = self.with_gradient(function) if derived else plain
        try:
            options = QUICK if jax.default_backend() == "cpu" else None
            traced = jax.jit(run, compiler_options=options).trace(operands)
            if any(without_steps(eqn) for eqn in equations(traced.jaxpr)):
                raise Unfit(f"on {self.listed(operands)} it runs a kernel that has no steps")
            # A callback raises when it runs.
            return jax.block_until_ready(traced.lower().compile()(operands))
        except (Unfit, Error):
            raise
        except Exception as error:
            first = str(error).strip().splitlines() or [""]
            raise Unfit(f"on {self.listed(operands)} it raises {type(error).__name__}: {first[0]:.200}") from error

    def with_gradient(self, function: Results) -> Callable[[Sequence[Array]], Pulled]:
        """Returns the results, and the gradients of the floating operands under fixed weights of the floating results."""
        weights = [x if _is_float(x.dtype) else None for x in random_arrays(self.outs, {}, positive=True)]
        at = self.floats

        def both(operands: Sequence[Array]) -> Pulled:
            def weighed(*given: Array) -> tuple[Array, list[list[Array]]]:
                full = {**dict(enumerate(operands)), **dict(zip(at, given, strict=True))}
                results = function([*full.values()])
                pairs = ((x, weight) for (x, *_), weight in zip(results, weights, strict=True) if weight is not None)
                terms = (jnp.sum(x * weight.astype(x.dtype)).astype("float32") for x, weight in pairs)
                return cast(Array, sum(terms, jnp.zeros(()))), results

            pulled, results = jax.grad(weighed, tuple(range(len(at))), has_aux=True)(*(operands[n] for n in at))
            return results, pulled

        return both

    def compare_with_text(self, known: AtOnce) -> None:
        """Evaluates a definition without `@`, and raises Error if the function returns something else."""
        operands = cast("list[np.ndarray]", known.operands)
        told = evaluate(self.candidate.definition.name, self.params, operands, self.outs)
        for name, one, other in zip(self.results(), known.results, told, strict=True):
            if (at := first_difference(one, other)) is not None:
                title = f"`{self.candidate.title}` does not match its definition"
                note = told_apart(name, at, one, "by the function", other, "by the definition")
                help = "`@` stands for a computation that index notation cannot express: `out[i] = @(x[i, j:])`"
                notes = (f"on {self.listed(known.operands)}", note)
                self.candidate.written.fail(self.candidate.title, title, help, notes=notes)

    @property
    def floats(self) -> list[int]:
        """The positions of the operands that have a gradient."""
        return [n for n, (dtype, _) in enumerate(self.ins) if _is_float(jnp.dtype(dtype))]

    def operands(self) -> list[str]:
        return spelled(self.candidate.definition.operands, len(self.ins))

    def results(self) -> list[str]:
        return spelled(self.candidate.definition.results, len(self.outs))

    def listed(self, operands: Sequence[Array]) -> str:
        """Operands with their types: `x f32[4, 8], ids i32[4]`."""
        return ", ".join(
            f"{name} {types_text([type])}" for name, type in zip(self.operands(), array_types(operands), strict=True)
        )

    def variable(self, index: int) -> str:
        """The name of an index in the definition's text."""
        shapes = [shape for _, shape in self.ins], [shape for _, shape in self.outs]
        definition = self.candidate.definition.with_arity(len(self.ins), len(self.outs))
        for site in Sites(definition, self.params, *shapes).all:
            # Results count -1, -2, ...
            table = (*self.signature.operand_at, *reversed(self.signature.result_at))[site.array]
            for number, _, dim in site.placed:
                term = site.terms[number]
                if index in table and table[index].dim == dim and names(term):
                    return names(term)[0] + (".." if groups(term) else "")
        return self.candidate.title

    def resized(self, index: int, extent: int) -> tuple[list[Type], list[Type]]:
        """The types with another extent of one index."""
        old = self.signature.indices[index].extent

        def dim(n: int, digits: tuple[SubIndex, ...]) -> int:
            return n // old * extent if any(digit.at == index for digit in digits) else n

        def sized(types: Sequence[Type], dims: Sequence[SubIndices]) -> list[Type]:
            return [(dtype, tuple(map(dim, shape, each))) for (dtype, shape), each in zip(types, dims, strict=True)]

        return sized(self.ins, self.signature.operand_dims), sized(self.outs, self.signature.result_dims)


def _is_float(dtype: object) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))
