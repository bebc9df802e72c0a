"""How long Partita takes for a program of very many equations without loops, beside `jax.make_jaxpr`.

    python -m benchmarks.long              # the table
    python -m benchmarks.long 200000       # one measurement, as JSON

CPU seconds, each measurement in a separate process. A column of microseconds an equation is level if the time is linear.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import sys
from time import process_time

import jax
import jax.numpy as jnp
from rich.progress import track

from . import fresh
from .report import Table, machine

EQUATIONS = (12_500, 25_000, 50_000, 100_000, 200_000)
PARTS = ("make_jaxpr", "plan", "tile", "spmd")


def chain(x: jax.Array, w: jax.Array, equations: int) -> jax.Array:
    """Elementwise steps in a row, with a dot among every hundred."""
    for number in range(equations // 2):
        x = x @ w + x if number % 50 == 0 else x * 1.01 - 0.5
    return x


def measured(equations: int) -> dict[str, float]:
    """The CPU seconds of tracing, of a plan, of a tactic with its decisions, and of lowering, in this order."""
    import partita as pt

    x, w = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((64, 8), (8, 8)))

    def program(x: jax.Array, w: jax.Array) -> jax.Array:
        return chain(x, w, equations)

    laps = [process_time()]
    jax.make_jaxpr(program)(x, w)
    laps.append(process_time())
    plan = pt.plan(program, pt.Mesh(data=8), x, w)
    laps.append(process_time())
    plan = plan.tile("x", 0, "data")
    plan.counts()
    laps.append(process_time())
    plan.spmd()
    laps.append(process_time())
    return {name: after - before for name, before, after in zip(PARTS, laps, laps[1:], strict=False)}


def tables() -> list[Table]:
    runs = [(n, fresh.measure("long", n)) for n in track(EQUATIONS, description="long")]
    rows = [[n, *(f[name] for name in PARTS), *(1e6 * f[name] / n for name in PARTS)] for n, f in runs]
    columns = ["equations", *(f"{name}, s" for name in PARTS), *(f"{name}, µs each" for name in PARTS)]
    title = "Programs of many equations on a mesh of eight devices: CPU seconds, and microseconds an equation"
    return [Table("long", title, columns, rows, [machine()])]


if __name__ == "__main__":
    match sys.argv[1:]:
        case [equations]:
            fresh.answer(**measured(int(equations)))
        case []:
            for table in tables():
                table.show()
                table.write()
        case _:
            sys.exit(__doc__)
