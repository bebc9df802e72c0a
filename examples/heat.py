"""The heat equation on a plane, in explicit steps of a five-point stencil, with the rows of the plane over eight devices.

In each step a device gets the row before its block and the row after it: one permute up, and one down. With `widened`, four
steps share one exchange of four rows, and the devices compute the rows at the rim twice.

    python -m examples.heat
"""

import jax
import jax.numpy as jnp

import partita as pt

SIZE, TRIPS, STEPS, RATE = 64, 10, 4, 0.2


def step(u: jax.Array) -> jax.Array:
    """One step; outside of the plane it is zero degrees."""
    v = jnp.pad(u, 1)
    around = v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2]
    return u + RATE * (around - 4 * u)


def heat(u: jax.Array) -> jax.Array:
    """The plane after `TRIPS` times `STEPS` steps."""

    def trip(u: jax.Array, _: None) -> tuple[jax.Array, None]:
        for number in range(STEPS):
            u = pt.tag(step(u), f"u{number}")
        return u, None

    return jax.lax.scan(trip, u, None, length=TRIPS)[0]


rows = pt.Tile({"u": 0}, "data")
widened = pt.Widen([f"u{number}" for number in range(STEPS - 1)])

WAYS = {"exchanged": [rows], "widened": [widened, rows]}


def argument() -> jax.Array:
    """A warm square in the middle of the plane."""
    warm = jnp.abs(jnp.arange(SIZE) - SIZE // 2) < SIZE // 8
    return 100.0 * (warm[:, None] & warm[None])


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    mesh, u = pt.Mesh(data=8), argument()
    expected = jax.jit(heat)(u)
    for name, tactics in WAYS.items():
        partitioned = pt.jit(heat, mesh=mesh, tactics=tactics)
        plan = partitioned.plan(u)
        error = float(jnp.max(jnp.abs(partitioned(u) - expected)))
        print(f"{name}: {plan.counts()['permute']} permutes, {plan.bytes_per_device():,} bytes, largest error {error:.0e}")


if __name__ == "__main__":
    main()
