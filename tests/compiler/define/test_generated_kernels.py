"""Generated Pallas calls: a definition that follows from the grid and the BlockSpecs is correct for the call."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from figures import Figures
from generated import examples
from hypothesis import strategies as st
from jax.core import ShapedArray
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from kernels import call, f32, normal

import partita as pt
from partita.compiler.define.candidate import DefinitionCandidate
from partita.compiler.define.self_defining import DERIVED
from partita.compiler.define.verify import accept
from partita.compiler.inputs.string_literals import Written
from partita.compiler.ops.jax_expansions import equations
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.definitions.registry import definitions

Dim = tuple[int | None, int, bool]
"""The grid axis along which a dim is read block by block, the length of a block, and whether blocks are read from the end."""


@dataclass(frozen=True)
class Drawn:
    """A call: every element of a result's block depends on all elements that its step reads, and on their positions."""

    grid: tuple[int, ...]
    ins: tuple[tuple[Dim, ...], ...]
    out: tuple[Dim, ...]
    asked: int | None
    """The axis whose position the kernel adds."""
    begun: int | None
    """The kernel adds up in scratch, which it resets at the first position of this axis."""

    def spec(self, dims: tuple[Dim, ...]) -> pl.BlockSpec:
        def index(*at: Any) -> tuple[Any, ...]:
            return tuple(0 if axis is None else self.grid[axis] - 1 - at[axis] if back else at[axis] for axis, _, back in dims)

        return pl.BlockSpec(tuple(size for _, size, _ in dims), index)

    def shape(self, dims: tuple[Dim, ...]) -> tuple[int, ...]:
        return tuple(size * (1 if axis is None else self.grid[axis]) for axis, size, _ in dims)

    def kernel(self, *refs: Any) -> None:
        ins, out = refs[: len(self.ins)], refs[len(self.ins)]
        total = sum(jnp.sum(x[...] * _numbers(x.shape)) for x in ins) * _numbers(out.shape)
        if self.asked is not None:
            total += pl.program_id(self.asked)
        if self.begun is not None:
            kept = refs[-1]

            @pl.when(pl.program_id(self.begun) == 0)
            def _() -> None:
                kept[...] = jnp.zeros_like(kept)

            kept[...] += total
            total = kept[...]
        again = [axis for axis, steps in enumerate(self.grid) if steps > 1 and axis not in {axis for axis, _, _ in self.out}]
        first = sum(pl.program_id(axis) for axis in again) == 0

        @pl.when(first if again else True)
        def _() -> None:
            out[...] = jnp.zeros_like(out)

        out[...] += total

    def function(self) -> Callable[..., Any]:
        scratch = [pltpu.VMEM(tuple(size for _, size, _ in self.out), jnp.float32)] * (self.begun is not None)
        specs: Any = {"in_specs": [self.spec(dims) for dims in self.ins], "out_specs": self.spec(self.out)}
        return call(self.kernel, f32(*self.shape(self.out)), self.grid, scratch_shapes=scratch, **specs)


def _numbers(shape: tuple[int, ...]) -> Any:
    return jnp.arange(1.0, prod(shape) + 1).reshape(shape)


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    grid = tuple(draw(st.lists(st.sampled_from((2, 2, 4, 1)), min_size=2, max_size=3)))

    def array(backwards: bool) -> tuple[Dim, ...]:
        axes = draw(st.permutations((*range(len(grid)), None)))[: draw(st.integers(1, 3))]
        back = [backwards and draw(st.integers(0, 9)) == 0 for _ in axes]
        return tuple((axis, draw(st.integers(1, 3)), each) for axis, each in zip(axes, back, strict=True))

    ins = tuple(array(backwards=True) for _ in range(draw(st.integers(1, 2))))
    axes = st.integers(0, len(grid) - 1)
    # The simplest calls do not ask for their position, so that they have a definition.
    asked = draw(axes) if draw(st.integers(0, 5)) == 5 else None
    return Drawn(grid, ins, array(backwards=False), asked, draw(st.none() | axes))


def test_a_derived_definition_is_true_of_the_call(figures: Figures) -> None:
    seen: Counter[str] = Counter()

    @examples(15)
    @hypothesis.given(drawn())
    def run(case: Drawn) -> None:
        function = case.function()
        args = [normal(*case.shape(dims), seed=seed) for seed, dims in enumerate(case.ins)]
        (eqn,) = [each for each in equations(jax.make_jaxpr(function)(*args).jaxpr) if each.primitive.name == "pallas_call"]
        try:
            text = DERIVED["pallas_call"].text(eqn)
        except pt.Error as reason:
            text = ""
            assert reason.title
        # Scratch that is read before it is written has no defined value.
        known = bool(np.isfinite(np.asarray(function(*args))).all())
        seen.update(calls=1, derived=bool(text))
        if text and known:
            definition = definitions.add(*parse_definitions(text).values())
            ins, outs = (cast("list[ShapedArray]", [atom.aval for atom in atoms]) for atoms in (eqn.invars, eqn.outvars))
            accept(DefinitionCandidate(definition, Written(text), DERIVED["pallas_call"].block), eqn.params, ins, outs)

    run()
    figures.add("generated Pallas calls with a definition", seen["derived"], of=seen["calls"])
    assert seen["derived"] > seen["calls"] // 4
