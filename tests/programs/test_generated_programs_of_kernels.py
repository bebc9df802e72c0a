"""Generated programs of kernels on overlapping device sets: equal to the plain function, and so are their derivatives.

Whatever order their kernels and transfers arrive in: each order in which values are made before they are read is right.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis.strategies import DrawFn, booleans, composite, integers, lists, randoms, sampled_from

import partita as pt
from partita.compiler.graph.graph import Graph
from partita.compiler.graph.run import Launch

X = [np.random.default_rng(number).standard_normal((8, 16), np.float32) for number in range(3)]
EVERY = pt.devices(8, "every")

ONE: Sequence[Callable[..., Any]] = (
    lambda x: jnp.tanh(x),
    lambda x: x - x.mean(1, keepdims=True),
    lambda x: x - x.mean(0, keepdims=True),
    lambda x: (x @ x.T) @ x * 0.1,
    lambda x: jnp.flip(x, 0) + 1,
    lambda x: jnp.cumsum(x, 0) * 0.3,
)
TWO: Sequence[Callable[..., Any]] = (
    lambda x, y: x + y,
    lambda x, y: x @ (y.T @ x) * 0.05,
    lambda x, y: x * y,
    lambda x, y: (x + y.sum(0, keepdims=True), x * 2),
)
BETWEEN: Sequence[Callable[..., Any]] = (lambda x: x * 2, lambda x: x + 1, lambda x: jnp.flip(x, 1) - 0.5)


@dataclass
class Drawn:
    """Functions, the kernels that they become, and the steps: which function, or code between kernels, of which values."""

    functions: list[Callable[..., Any]]
    kernels: list[Any]
    steps: list[tuple[int, Sequence[int]]]
    results: Sequence[int]

    def run(self, functions: Sequence[Callable[..., Any]], *arrays: Any) -> list[Any]:
        values = [*arrays]
        for number, reads in self.steps:
            made = (functions[number] if number >= 0 else BETWEEN[number])(*(values[at] for at in reads))
            values += made if isinstance(made, tuple) else [made]
        return [values[number] for number in self.results]


@composite
def programs(draw: DrawFn) -> Drawn:
    drawn = Drawn([], [], [], [])
    for _ in range(draw(integers(1, 3))):
        size = draw(sampled_from([1, 2, 2, 4, 4, 8]))
        at = draw(integers(0, 8 - size))
        here: Any = EVERY[at : at + size]
        if size >= 4 and draw(booleans()):
            whole = pt.Mesh(outer=2, a=2, b=2).on("grid")
            here = whole.at(outer=draw(integers(0, 1)))
        function = draw(sampled_from([*ONE, *TWO]))
        names = ("x", "y")[: 1 if function in ONE else 2]
        tiles = [pt.Tile({draw(sampled_from(names)): draw(integers(0, 1))}, axis) for axis in here if draw(booleans())]
        drawn.functions.append(function)
        drawn.kernels.append(pt.kernel(function, devices=here, tactics=tiles))
    values = len(X)
    for _ in range(draw(integers(1, 6))):
        number = draw(integers(-1, len(drawn.functions) - 1)) if drawn.steps else 0
        number = -draw(integers(1, len(BETWEEN))) if number < 0 else number
        reads = 1 if number < 0 or drawn.functions[number] in ONE else 2
        drawn.steps.append((number, [draw(integers(0, values - 1)) for _ in range(reads)]))
        values += 2 if number >= 0 and drawn.functions[number] is TWO[-1] else 1
    drawn.results = draw(lists(integers(len(X), values - 1), min_size=1, max_size=3))
    return drawn


def permuted(steps: Sequence[Launch], random: Random) -> list[Launch]:
    """The steps in a random order of arrival. Each comes after those that make what it reads, and frees nothing."""
    waiting, made = [replace(step, frees=()) for step in steps], list[Launch]()
    while waiting:
        pending = {slot for step in waiting for slot in step.fills}
        ready = [step for step in waiting if not pending & set(step.reads)]
        made.append(random.choice(ready))
        waiting.remove(made[-1])
    return made


@given(programs(), randoms(use_true_random=False))
@settings(max_examples=25)
def test_a_program_of_kernels_equals_the_function(drawn: Drawn, random: Random) -> None:
    used = [drawn.kernels[number].mesh for number, _ in drawn.steps if number >= 0]
    placed = {(mesh.part[0] if mesh.part else mesh).devices: jax.devices() for mesh in used}

    def with_cotangents(functions: Sequence[Callable[..., Any]], *arrays: Any) -> tuple[Any, Any]:
        results, pull = jax.vjp(lambda *arrays: drawn.run(functions, *arrays), *arrays)
        # Rounding changes these as little as it changes the results, which may be millions.
        return results, pull([each / (1 + each * each) for each in results])

    for call in (drawn.run, with_cotangents):
        program = pt.program(lambda *arrays, call=call: call(drawn.kernels, *arrays), devices=placed)
        graph, expected = program.graph(*X), jax.tree.leaves(call(drawn.functions, *X))
        compiled = graph.compile(placed)
        in_order = compiled.steps
        for steps in (in_order, permuted(in_order, random), permuted(in_order, random)):
            compiled.steps = steps
            for one, other in zip(jax.tree.leaves(compiled(*X)), expected, strict=True):
                # Of the largest element: where it is hundreds, sums in another order differ by more near zero.
                np.testing.assert_allclose(one, other, rtol=5e-4, atol=1e-4 * max(5, float(jnp.abs(other).max())))
        text = graph.text()
        assert Graph.parse(text).text() == text
