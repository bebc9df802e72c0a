"""Random programs, meshes and tactics for hypothesis: `cases()` draws a `Case`.

A program is data, a list of steps over the values so far, so that hypothesis can shrink it, its text says what it is, and its
steps can be put in another order. Extents come from a small pool, so that shapes meet and most of them divide over the mesh.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import jax
import numpy as np
from generated_steps import Shape, Step, steps
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import partita as pt
from partita.compiler.plan import Plan

Array: TypeAlias = Any

MESHES = [
    {"a": 2},
    {"a": 4},
    {"a": 8},
    {"a": 2, "b": 2},
    {"a": 4, "b": 2},
    {"a": 2, "b": 4},
    {"a": 2, "b": 2, "c": 2},
    {"a": 3, "b": 2},
]
POOLS = [(8, 16, 4), (8, 24), (16, 8, 6), (4, 12, 8), (8, 16, 3), (24, 12, 8)]
LARGEST = 1 << 12
# How many times as many examples `make fuzz` tries.
MORE = 10


@dataclass(frozen=True, slots=True)
class Program:
    """Steps over float arguments and one vector of ids; value `n` is an argument, or what step `n - arguments` makes."""

    shapes: tuple[Shape, ...]
    ids: int
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    grad: bool

    def arrays(self) -> tuple[Array, ...]:
        """Arguments: floats around 0, and ids of which some are out of range."""
        random = np.random.default_rng(len(self.steps))
        floats = [random.uniform(-1.5, 1.5, shape).astype(np.float32) for shape in self.shapes]
        return (random.integers(-2, 12, self.ids).astype(np.int32), *floats)

    def forward(self, ids: Array, *arrays: Array) -> tuple[Array, ...]:
        values = list(arrays)
        for step in self.steps:
            values.append(step.run(ids, values))
        return tuple(values[result] for result in self.results)

    @property
    def function(self) -> Callable[..., Any]:
        """The results, or their gradients with respect to every float argument."""
        if not self.grad:
            return self.forward

        def loss(arrays: tuple[Array, ...], ids: Array) -> Array:
            return sum((jax.numpy.sum(jax.numpy.tanh(each)) for each in self.forward(ids, *arrays)), start=0.0)

        def gradients(ids: Array, *arrays: Array) -> Any:
            return jax.value_and_grad(loss)(arrays, ids)

        return gradients


@dataclass(frozen=True, slots=True)
class Tactic:
    """A tactic with numbers for names: whatever of it does not exist or is refused is passed over."""

    kind: str
    value: int
    dim: int
    axis: int

    def apply(self, plan: Plan) -> Plan:
        axes = list(plan.mesh.axes)
        axis = axes[self.axis % len(axes)]
        inner = [name for name in plan.source.addresses.by_op if not name.startswith("constant")]
        outer = [*plan.arguments(), *plan.results()]
        names = inner if self.kind.endswith("inside") and inner else outer
        name = names[self.value % len(names)]
        rank = len(plan.source.program.shape(next(iter(plan.source.addresses.find(name).values()))))
        # Of a few dims too many, so that some tactics are refused.
        dim = self.dim % (rank + 1) if self.value % 8 == 0 else self.dim % max(rank, 1)
        try:
            match self.kind:
                case "replicate" | "replicate inside":
                    return plan.replicate(name, axis)
                case "later":
                    return plan.tile(name, dim, axis, propagate=False)
                case "propagate":
                    return plan.propagate(axis)
                case "held" | "held inside":
                    return plan.apply(pt.Tile({name: dim}, axis, held=True))
                case _:
                    return plan.tile(name, dim, axis)
        except pt.Error:
            return plan


KINDS = ["tile"] * 4 + ["tile inside"] * 5 + ["replicate", "replicate inside", "later", "propagate", "held", "held inside"]


@dataclass(frozen=True)
class Case:
    """A program, a mesh, and tactics in the order in which they are applied."""

    program: Program
    mesh: tuple[tuple[str, int], ...]
    tactics: tuple[Tactic, ...]

    @cached_property
    def start(self) -> Plan:
        return pt.plan(self.program.function, pt.Mesh(**dict(self.mesh)), *self.program.arrays())

    @cached_property
    def plan(self) -> Plan:
        return self.start.apply(*(tactic.apply for tactic in self.tactics))

    @property
    def communicates(self) -> bool:
        return any(self.plan.counts().values())


def examples(number: int) -> settings:
    """So many examples in `make test`, and a failure as it comes; in `make fuzz` ten times as many, made small."""
    profile = settings.default
    assert profile is not None
    fixed = profile.derandomize
    return settings(
        max_examples=number if fixed else number * MORE,
        phases=[Phase.explicit, Phase.generate] if fixed else profile.phases,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


@st.composite
def programs(draw: st.DrawFn, grad: bool, pool: tuple[int, ...]) -> Program:
    """Three to eight steps; what does not fit a step's shapes is not drawn."""
    extent = st.sampled_from(pool)
    ranks = draw(st.lists(st.sampled_from([2, 2, 1, 3]), min_size=2, max_size=3))
    shapes = tuple(tuple(draw(extent) for _ in range(rank)) for rank in ranks)
    ids = draw(extent)
    made: list[Step] = []
    known = list(shapes)
    for _ in range(draw(st.integers(3, 8))):
        step = draw(steps(known))
        shape = jax.eval_shape(step.run, jax.ShapeDtypeStruct((ids,), np.int32), _structs(known)).shape
        if 0 < prod(shape) <= LARGEST and len(shape) <= 4:
            made.append(step)
            known.append(shape)
    used = {operand for step in made for operand in step.operands}
    results = [n for n in range(len(shapes), len(known)) if n not in used]
    return Program(shapes, ids, tuple(made), tuple(results or [0]), grad)


def _structs(shapes: list[Shape]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]


@st.composite
def cases(draw: st.DrawFn, grad: bool = False) -> Case:
    mesh = draw(st.sampled_from(MESHES))
    program = draw(programs(grad, draw(st.sampled_from(POOLS))))
    number = st.integers(0, 1 << 10)
    tactic = st.builds(Tactic, st.sampled_from(KINDS), number, number, number)
    return Case(program, tuple(mesh.items()), tuple(draw(st.lists(tactic, min_size=5, max_size=12))))
