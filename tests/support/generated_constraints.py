"""Generated programs with constraints at some of their values, one or two in a row, and with shardings of their arguments.

A constraint is a `PartitionSpec` as data: for each dim its axes, or None if it is open. Only axes that divide a dim are drawn.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import jax
from generated import MESHES, POOLS, Case, Program, drawn_programs
from generated_tactics import Tactic, tactics
from hypothesis import strategies as st
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.plan.annotation_outcomes import Annotation

Spec = tuple[tuple[str, ...] | None, ...]
"""For each dim its axes; None for an open dim."""


def partition_spec(spec: Spec) -> P:
    return P(*(P.UNCONSTRAINED if each is None else each or None for each in spec))


@dataclass(frozen=True, slots=True)
class Constrained(Program):
    """A program whose values, by number, have constraints, in order."""

    mesh: tuple[tuple[str, int], ...] = ()
    said: tuple[tuple[int, tuple[Spec, ...]], ...] = ()

    def sharding(self, spec: Spec) -> NamedSharding:
        names, sizes = zip(*self.mesh, strict=True)
        return NamedSharding(jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(names)), partition_spec(spec))

    def constrained(self, number: int, value: Any) -> Any:
        for spec in dict(self.said).get(number, ()):
            value = jax.lax.with_sharding_constraint(value, self.sharding(spec))
        return value

    def forward(self, *arrays: Any) -> tuple[Any, ...]:
        values = [self.constrained(number, array) for number, array in enumerate(arrays)]
        for step in self.steps:
            values.append(self.constrained(len(values), step.run(values)))
        return tuple(values[result] for result in self.results)


@dataclass(frozen=True)
class ConstrainedCase(Case):
    """Such a program, and shardings of some of its arguments, by number; its plan applies them after the first tactics."""

    arguments: tuple[tuple[int, Spec], ...] = ()
    first: int = 0
    """How many tactics come before `pt.Annotated()`."""

    @cached_property
    def given(self) -> tuple[Any, ...]:
        """The arrays, those with a sharding as their shapes."""
        program, specs = self.program, dict(self.arguments)
        assert isinstance(program, Constrained)
        return tuple(
            jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=program.sharding(specs[number])) if number in specs else each
            for number, each in enumerate(program.arrays())
        )

    @cached_property
    def start(self) -> Plan:
        return pt.plan(self.program.function, pt.Mesh(**dict(self.mesh)), *self.given)

    @cached_property
    def annotated(self) -> Plan:
        return self.with_annotations(self.start)

    @cached_property
    def plan(self) -> Plan:
        steps = [tactic.apply for tactic in self.tactics]
        try:
            begun = self.with_annotations(self.start.apply(*steps[: self.first]))
        except pt.Error:
            # One of them has placed a value that the program places.
            return self.annotated.apply(*steps)
        return begun.apply(*steps[self.first :])

    def with_annotations(self, plan: Plan) -> Plan:
        return plan.apply(pt.Annotated()) if any(map(says_something, self.start.annotations)) else plan


def says_something(annotation: Annotation) -> bool:
    """Whether an annotation names an axis, or says of all dims that they are whole."""
    return annotation.layout.replace("_", "").strip(", ") != ""


@st.composite
def specs(draw: st.DrawFn, shape: tuple[int, ...], mesh: Mapping[str, int], is_open: bool = True) -> Spec:
    """A layout of an array of this shape: each axis on at most one dim."""
    left, found = draw(st.permutations(list(mesh))), list[tuple[str, ...] | None]()
    for extent in shape:
        count = draw(st.sampled_from((0, 0, 1, 1, 2)))
        axes = tuple(left[:count])
        if extent % prod(mesh[axis] for axis in axes) or not extent:
            axes = ()
        left = [axis for axis in left if axis not in axes]
        found.append(None if is_open and not axes and draw(st.integers(0, 3)) == 0 else axes)
    return tuple(found)


@st.composite
def constrained_cases(draw: st.DrawFn, grad: bool = False) -> ConstrainedCase:
    mesh = draw(st.sampled_from([mesh for mesh in MESHES if len(mesh) > 1 and 3 not in mesh.values()]))
    program, known = draw(drawn_programs(grad, draw(st.sampled_from(POOLS[:4]))))
    numbers = draw(st.lists(st.integers(1, len(known) - 1), min_size=1, max_size=4, unique=True))
    said = tuple(
        (number, tuple(draw(st.lists(specs(known[number].shape, mesh), min_size=1, max_size=2)))) for number in numbers
    )
    args = tuple((n, draw(specs(each.shape, mesh, is_open=False))) for n, each in enumerate(program.arguments) if n)
    pairs = tuple(mesh.items())
    made = Constrained(program.arguments, program.steps, program.results, grad, pairs, said)
    chosen: tuple[Tactic, ...] = tuple(draw(st.lists(tactics, max_size=4)))
    given = tuple(each for each in args if draw(st.booleans()))
    return ConstrainedCase(made, pairs, chosen, given, draw(st.integers(0, len(chosen))))
