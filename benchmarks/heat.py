"""The heat equation on a plane, 1,000 steps in a `scan`, its rows tiled over eight host devices.

    python -m benchmarks.heat

Partita's plan, `jax.jit` with the same shardings, and a `shard_map` by hand that sends a row up and a row down in each step
run in turn; figures are medians.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import partita as pt

from .case import MESH, Case, on_auto_axes, timed
from .report import Table

SIZE, STEPS, ROUNDS = 512, 1000, 11
RATE = 0.2


def heat(u: jax.Array) -> jax.Array:
    """The plane after all steps; its border is kept at zero degrees."""

    def step(u: jax.Array, _: None) -> tuple[jax.Array, None]:
        v = jnp.pad(u, 1)
        around = v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2]
        return u + RATE * (around - 4 * u), None

    return jax.lax.scan(step, u, None, length=STEPS)[0]


def by_hand(u: jax.Array) -> jax.Array:
    """The same on one device's rows: the last row before them and the first row after them arrive by permutes."""
    down = [(i, i + 1) for i in range(MESH.size - 1)]
    up = [(i + 1, i) for i in range(MESH.size - 1)]

    def step(u: jax.Array, _: None) -> tuple[jax.Array, None]:
        above, below = jax.lax.ppermute(u[-1:], "data", down), jax.lax.ppermute(u[:1], "data", up)
        v = jnp.pad(jnp.concatenate([above, u, below]), ((0, 0), (1, 1)))
        around = v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2]
        return u + RATE * (around - 4 * u), None

    return jax.lax.scan(step, u, None, length=STEPS)[0]


def tables() -> list[Table]:
    jax.config.update("jax_num_cpu_devices", MESH.size)
    case = Case("heat", heat, [jax.random.uniform(jax.random.key(0), (SIZE, SIZE))], [pt.Tile({"u": 0}, "data")])
    mesh = on_auto_axes(case.shardings[1]).mesh
    hand = jax.jit(jax.shard_map(by_hand, mesh=mesh, in_specs=P("data"), out_specs=P("data"), check_vma=False))
    title = f"Heat equation on {SIZE} x {SIZE} points, {STEPS:,} steps, rows over eight host devices"
    return [timed("heat", title, case, hand, ROUNDS)]


if __name__ == "__main__":
    for table in tables():
        table.show()
        table.write()
