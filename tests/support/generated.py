"""Random programs, meshes and tactics for hypothesis: `cases()` draws a `Case`.

A program is data, a list of steps over the values so far, so that hypothesis can shrink it, print it, and reorder its steps.
Extents come from a small pool, so that shapes match and most of them divide over the mesh.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np
from generated_choice import WHOLE, Chooser, Known, choose
from generated_steps import Shape, Step
from generated_tactics import Tactic, tactics
from hypothesis import HealthCheck, Phase, settings, strategies as st

import partita as pt
from partita.compiler.api.plan import Plan

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
    {"a": 3},
    {"a": 1, "b": 2},
    {"a": 2, "b": 1, "c": 4},
]
POOLS = [(8, 16, 4), (8, 24), (16, 8, 6), (4, 12, 8), (8, 16, 3), (24, 12, 8), (6, 1, 12), (5, 8)]
# The float dtypes of a program, and the other dtypes of its arguments.
THEMES: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("float32",), ()),
    (("float32",), ()),
    (("float32",), (*WHOLE, "bool", "complex64")),
    (("float32", "bfloat16"), ("bfloat16", "int32")),
    (("float32", "float16"), ("float16", "uint8")),
]
# The factor by which `make fuzz` tries more examples.
MORE = 10


@dataclass(frozen=True, slots=True)
class Program:
    """Steps over arguments, of which the first are ids; value `n` is an argument, or the result of step `n - arguments`."""

    arguments: tuple[Known, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    grad: bool

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(each.shape for each in self.arguments)

    @property
    def narrow(self) -> str:
        """The narrowest float that the program computes with: it decides how much an order of additions shows."""
        names = str(self)
        return next((each for each in ("bfloat16", "float16") if each in names), "float32")

    def arrays(self) -> tuple[Array, ...]:
        """Numbers around 0; ids of which some are out of range."""
        random = np.random.default_rng(len(self.steps))
        return (random.integers(-2, 12, self.shapes[0]).astype(np.int32), *(drawn(random, each) for each in self.arguments[1:]))

    def forward(self, *arrays: Array) -> tuple[Array, ...]:
        values = list(arrays)
        for step in self.steps:
            values.append(step.run(values))
        return tuple(values[result] for result in self.results)

    @property
    def function(self) -> Callable[..., Any]:
        """The results, or their gradients with respect to every float argument."""
        if not self.grad:
            return self.forward
        floats = [n for n, each in enumerate(self.arguments) if each.kind == "float"]

        def gradients(*arrays: Array) -> Any:
            def loss(chosen: list[Array]) -> Array:
                given = dict(zip(floats, chosen, strict=True))
                return total(self.forward(*(given.get(n, array) for n, array in enumerate(arrays))))

            return jax.value_and_grad(loss)([arrays[n] for n in floats])

        return gradients


def total(results: tuple[Array, ...]) -> Array:
    """A scalar that depends on every floating element."""
    parts = [jnp.abs(each) if jnp.iscomplexobj(each) else each for each in results if jnp.issubdtype(each.dtype, jnp.inexact)]
    return sum((jnp.sum(jnp.tanh(each.astype(jnp.float32))) for each in parts), start=jnp.float32(0))


def drawn(random: np.random.Generator, known: Known) -> Array:
    match known.kind:
        case "whole":
            return random.integers(0 if known.dtype.startswith("u") else -9, 10, known.shape).astype(known.dtype)
        case "truth":
            return random.integers(0, 2, known.shape).astype(bool)
        case "complex":
            return (random.uniform(-1, 1, known.shape) + 1j * random.uniform(-1, 1, known.shape)).astype(known.dtype)
        case _:
            return random.uniform(-1.5, 1.5, known.shape).astype(np.float32).astype(jnp.dtype(known.dtype))


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
    def share(self) -> int:
        """A number below 100, for checks that run on only some cases."""
        return crc32(repr((self.program, self.mesh, self.tactics)).encode()) % 100

    @property
    def communicates(self) -> bool:
        return any(self.plan.counts().values())


def is_quick() -> bool:
    """Whether it is `make test` that runs, and not `make fuzz`."""
    profile = settings.default
    assert profile is not None
    return profile.derandomize


def examples(number: int, fuzzed: int = 0) -> settings:
    """This many examples in `make test`, without shrinking; in `make fuzz` ten times as many, or so many, with shrinking."""
    profile = settings.default
    assert profile is not None
    fixed = is_quick()
    return settings(
        max_examples=number if fixed else fuzzed or number * MORE,
        phases=[Phase.explicit, Phase.generate] if fixed else profile.phases,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


def programs(grad: bool, pool: tuple[int, ...]) -> st.SearchStrategy[Program]:
    """Three to eight steps; only steps that fit are drawn."""
    return drawn_programs(grad, pool).map(lambda drawn: drawn[0])


@st.composite
def drawn_programs(draw: st.DrawFn, grad: bool, pool: tuple[int, ...]) -> tuple[Program, list[Known]]:
    """A program, and the shapes and dtypes of its values."""
    extent = st.sampled_from(pool)
    floats, others = draw(st.sampled_from(THEMES))
    ranks = draw(st.lists(st.sampled_from([2, 2, 1, 3]), min_size=2, max_size=3))
    arguments = [Known((draw(extent),), "int32")]
    for number, rank in enumerate(ranks):
        dtype = draw(st.sampled_from((*floats, *others))) if number else floats[0]
        arguments.append(Known(tuple(draw(extent) for _ in range(rank)), dtype))
    made: list[Step] = []
    known = list(arguments)
    for _ in range(draw(st.integers(3, 8))):
        chosen = choose(Chooser(draw, tuple(known), grad, floats))
        if chosen is not None:
            made.append(chosen[0])
            known.append(chosen[1])
    used = {operand for step in made for operand in step.operands}
    results = [n for n in range(len(arguments), len(known)) if n not in used]
    return Program(tuple(arguments), tuple(made), tuple(results or [1]), grad), known


@st.composite
def cases(draw: st.DrawFn, grad: bool = False) -> Case:
    mesh = draw(st.sampled_from(MESHES))
    program = draw(programs(grad, draw(st.sampled_from(POOLS))))
    chosen = tuple(draw(st.lists(tactics, min_size=6, max_size=14)))
    return Case(program, tuple(mesh.items()), chosen)
