"""Small programs tiled in space, beside `jax.jit` with the same input and output shardings: collectives and bytes.

    python -m benchmarks.windows

Partita's collectives are counted in the jaxpr that it hands to JAX, those of `jax.jit` in the program that XLA compiles, on
eight host devices. Every program is compared with the unpartitioned one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

import partita as pt
from partita.tests.support import jaxpr_collectives

from . import hlo
from .report import Table, machine

MESH = pt.Mesh(data=8)

Tree = Any
Step = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A program, and which dims of its arguments are tiled over the devices."""

    name: str
    function: Callable[..., Tree]
    args: Sequence[Tree]
    tiled: Mapping[str, int]
    widened: Sequence[str] = ()
    padded: bool = False

    @cached_property
    def plan(self) -> pt.Plan:
        plan = pt.plan(self.function, MESH, *self.args)
        if self.widened:
            plan = plan.widen(self.widened)
        return plan.apply(pt.Tile(self.tiled, "data", padded=self.padded))

    @cached_property
    def compiled(self) -> Callable[..., Tree]:
        return self.plan.compile()

    @cached_property
    def placed(self) -> Sequence[Tree]:
        """The arguments where the plan wants them."""
        return jax.device_put(self.args, self.shardings[0])

    @cached_property
    def shardings(self) -> tuple[Tree, Tree]:
        """The shardings of the arguments and of the results, in their trees."""
        compiled: Any = self.compiled
        leaves, tree = jax.tree.flatten(self.args)
        given = jax.tree.unflatten(tree, map(on_auto_axes, compiled.in_shardings[: len(leaves)]))
        results = jax.tree.structure(jax.eval_shape(self.function, *self.args))
        return given, jax.tree.unflatten(results, map(on_auto_axes, compiled.out_shardings))

    @cached_property
    def peer(self) -> Any:
        """The same function, compiled by `jax.jit` for these shardings."""
        given, wanted = self.shardings
        return jax.jit(self.function, in_shardings=given, out_shardings=wanted).lower(*self.args).compile()

    def row(self) -> list[str | int]:
        """The collectives and bytes of both, after a check that both compute what the function does."""
        expected = jax.jit(self.function)(*self.args)
        for step in (self.compiled, self.peer):
            jax.tree.map(agree, step(*self.placed), expected)
        (ours, bytes_ours), (theirs, bytes_theirs) = self.counted(self.compiled), self.counted(self.peer)
        assert bytes_ours == self.plan.bytes_per_device(), self.name
        return [self.name, ours, theirs, bytes_ours, bytes_theirs]

    def counted(self, step: Step) -> tuple[str, int]:
        """The collectives of a call and the bytes that a device receives: by the jaxpr, or by what XLA compiled."""
        if step is self.peer:
            compiled = hlo.collectives(self.peer.as_text())
            return listed(hlo.counts(compiled)), hlo.received(compiled)
        found = jaxpr_collectives.collectives(step, *self.placed)
        return listed(jaxpr_collectives.counts(found)), jaxpr_collectives.received(found)


def on_auto_axes(sharding: NamedSharding) -> NamedSharding:
    """The same sharding on a mesh whose axes are Auto, so that `jax.jit` is free inside."""
    mesh = sharding.mesh
    return NamedSharding(Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * mesh.devices.ndim), sharding.spec)


def agree(got: jax.Array, expected: jax.Array) -> None:
    """Checks that two results are equal up to rounding."""
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-4, atol=2e-4)


def listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{times:,} {kind}" for kind, times in counts.items() if times) or "none"


# The programs.


def conv(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """A convolution of images `[batch, rows, columns, channels]`."""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=layout)


def halved(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return conv(x, kernel, 2)


def stacked(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return conv(pt.tag(jax.nn.relu(conv(x, kernel)), "h"), kernel)


def pooled(x: jax.Array) -> jax.Array:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def pool_gradient(x: jax.Array) -> jax.Array:
    return jax.grad(lambda x: jnp.sum(pooled(x) ** 2))(x)


def stencil(u: jax.Array) -> jax.Array:
    """Eight steps of the heat equation, zero at both ends."""
    for step in range(8):
        beyond = jnp.pad(u, 1)
        u = pt.tag(u + 0.1 * (beyond[2:] - 2 * u + beyond[:-2]), f"u{step}")
    return u


def with_fixed_ends(u: jax.Array) -> jax.Array:
    """The same, written as an update of the inner points: the ends keep their values."""
    for _ in range(8):
        u = u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))
    return u


def rolled(u: jax.Array) -> jax.Array:
    return jnp.roll(u, 1)


def every_other(u: jax.Array) -> jax.Array:
    return u[::2]


def differences(u: jax.Array) -> jax.Array:
    return u[1:] - u[:-1]


def padded_differences(u: jax.Array) -> jax.Array:
    """Differences on as many points as there are values."""
    return jnp.diff(u, append=0.0)


def joined(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.concatenate([x, y])


def best(logits: jax.Array) -> jax.Array:
    return jnp.argmax(logits, axis=-1)


def best_eight(logits: jax.Array) -> Sequence[jax.Array]:
    return jax.lax.top_k(logits, 8)


def cases() -> list[Case]:
    key = jax.random.key(0)
    image, kernel = jax.random.normal(key, (1, 64, 32, 4)), jax.random.normal(key, (3, 3, 4, 4)) / 6
    line, logits = jnp.sin(jnp.arange(512.0)), jax.random.normal(key, (8, 8192))
    rows, points, vocabulary = {"x": 1}, {"u": 0}, {"logits": 1}
    return [
        Case("convolution, 3 x 3", conv, [image, kernel], rows),
        Case("convolution, 3 x 3, stride 2", halved, [image, kernel], rows),
        Case("two convolutions", stacked, [image, kernel], rows),
        Case("two convolutions, widened", stacked, [image, kernel], rows, widened=["h"]),
        Case("stencil, 8 steps", stencil, [line], points),
        Case("stencil, 8 steps, widened", stencil, [line], points, widened=[f"u{step}" for step in range(7)]),
        Case("stencil with fixed ends, 8 steps, padded", with_fixed_ends, [line], points, padded=True),
        Case("roll by 1", rolled, [line], points),
        Case("pool, 2 x 2", pooled, [image], rows),
        Case("gradient of a pool, 2 x 2", pool_gradient, [image], rows),
        Case("x[::2]", every_other, [line], points),
        Case("differences, 511 of 512", differences, [line], points, padded=True),
        Case("differences, 512 of 512", padded_differences, [line], points),
        Case("concatenate along the tiled dim", joined, [line, line + 1], {"x": 0, "y": 0}),
        Case("argmax over a tiled vocabulary", best, [logits], vocabulary),
        Case("top_k over a tiled vocabulary", best_eight, [logits], vocabulary),
    ]


def timed(name: str, title: str, case: Case, by_hand: Step | None, rounds: int) -> Table:
    """The time of a step and the collectives, of the plan and its peers, which run in turn in one sitting."""
    peers: dict[str, Step] = {"jit": case.peer} | ({"shard_map": by_hand} if by_hand is not None else {})
    steps: dict[str, Step] = {"partita": case.compiled, **peers}
    expected = jax.jit(case.function)(*case.args)
    for step in steps.values():
        jax.tree.map(agree, step(*case.placed), expected)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds):
        for each in [*steps, *steps][turn % len(steps) :][: len(steps)]:
            start = perf_counter()
            jax.block_until_ready(steps[each](*case.placed))
            times[each].append(perf_counter() - start)
    middle = {each: median(them) for each, them in times.items()}
    found = {each: case.counted(step) for each, step in steps.items()}
    best = min(middle[each] for each in peers)
    columns = ["", "collectives", "bytes received", "median, ms", "best, ms", "median / better peer"]
    rows = [[each, *found[each], 1000 * middle[each], 1000 * min(times[each]), middle[each] / best] for each in steps]
    notes = [f"One call of each in turn, {rounds} times, each first as often as last.", machine()]
    return Table(name, title, columns, rows, notes)


def tables() -> list[Table]:
    jax.config.update("jax_num_cpu_devices", MESH.size)
    return [
        Table(
            "windows",
            "Programs tiled in space, on eight host devices",
            ["", "partita", "jit", "bytes, partita", "bytes, jit"],
            [case.row() for case in cases()],
            [
                "`jit`: jax.jit with the same input and output shardings, Auto axes.",
                "Its collectives are those of the program that XLA compiles.",
                "Bytes are those that one device receives in a call.",
            ],
        )
    ]


if __name__ == "__main__":
    for table in tables():
        table.show()
        table.write()
