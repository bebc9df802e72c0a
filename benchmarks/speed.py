"""How long Partita takes, as ratios to `jax.make_jaxpr` and to Shardy, each measured cold in a separate process.

    python -m benchmarks.speed                 # the table
    python -m benchmarks.speed jaxpr 96        # one measurement of `make_jaxpr`, as JSON
    python -m benchmarks.speed partita 96      # one of Partita: plan, each tactic with its decisions, spmd

The runs of the three alternate, so that a slow minute of the machine affects all of them; a figure is the median.
"""

import sys
from time import perf_counter

import jax
import jax.extend.core
from rich.progress import track

from . import fresh
from .gpt3 import MESH, shapes, train_step
from .report import Table, machine

LAYERS = (2, 6, 12, 24, 48, 96)
REPEATS = 3
PARTS = ("BP", "MP", "Z3")


def jaxpr(layers: int) -> dict[str, float]:
    args = shapes(layers)
    start = perf_counter()
    traced = jax.make_jaxpr(train_step)(*args)
    seconds = perf_counter() - start
    return {"make_jaxpr": seconds, "equations": _equations(traced.jaxpr)}


def partita(layers: int) -> dict[str, float]:
    import partita as pt
    from partita.tests.support.strategies import strategy

    args, clock = shapes(layers), _Clock()
    plan = pt.plan(train_step, pt.Mesh(MESH), *args)
    figures = {"plan": clock.lap()}
    for name in PARTS:
        (tactic,) = strategy(name)
        plan = plan.apply(tactic)
        plan.counts()
        figures[name] = clock.lap()
    plan.spmd()
    figures["spmd"] = clock.lap()
    plan.memory()
    figures["memory"] = clock.lap()
    _check_shardings(plan.layout("params/**"))
    return {**figures, "collectives": sum(plan.counts().values())}


def tables() -> list[Table]:
    """Measures the ratios that the project promises, and the seconds from which they are computed."""
    runs: dict[int, list[dict[str, float]]] = {layers: [] for layers in LAYERS}
    for layers in track([n for _ in range(REPEATS) for n in LAYERS], description="speed"):
        shardy = fresh.measure("shardy", layers)
        runs[layers].append(
            {
                **fresh.measure("speed", "jaxpr", layers),
                **fresh.measure("speed", "partita", layers),
                "shardy": shardy["propagate"],
            }
        )
    figures = {layers: fresh.medians(each) for layers, each in runs.items()}
    return [_ratios(figures), _seconds(figures)]


def _ratios(figures: dict[int, dict[str, float]]) -> Table:
    rows = [
        [
            layers,
            int(f["equations"]),
            f["make_jaxpr"],
            *(f[name] / f["make_jaxpr"] for name in ("plan", *PARTS, "spmd")),
            sum(f[name] for name in PARTS) / f["shardy"],
        ]
        for layers, f in figures.items()
    ]
    return Table(
        "speed",
        "Speed on a GPT-3-shaped training step, as ratios",
        ["layers", "equations", "jaxpr, s", "plan", *PARTS, "spmd", "/ Shardy"],
        [*rows, ["bound", None, None, 1.5, 0.25, 0.25, 0.25, 2.0, 0.5]],
        [
            "jaxpr is `jax.make_jaxpr` alone; plan (trace and import), each tactic with its decisions, and spmd are "
            "divided by it.",
            "The last column divides the three tactics together by Shardy's C++ propagation of the same program.",
            f"Cold: each measurement in a fresh process, the median of {REPEATS}; the bounds hold at 96 layers.",
            machine(),
        ],
    )


def _seconds(figures: dict[int, dict[str, float]]) -> Table:
    names = ["make_jaxpr", "plan", *PARTS, "spmd", "shardy"]
    return Table(
        "speed_seconds",
        "The same in milliseconds a layer: linear if a column is level",
        ["layers", *names],
        [[layers, *(1000 * f[name] / layers for name in names)] for layers, f in figures.items()],
    )


class _Clock:
    """Seconds since the last lap."""

    def __init__(self) -> None:
        self.last = perf_counter()

    def lap(self) -> float:
        before, self.last = self.last, perf_counter()
        return self.last - before


def _equations(jaxpr: jax.extend.core.Jaxpr) -> int:
    """The number of equations of a jaxpr, with its calls inlined."""
    return sum(sum(map(_equations, bodies)) if (bodies := _bodies(eqn)) else 1 for eqn in jaxpr.eqns)


def _bodies(eqn: jax.extend.core.JaxprEqn) -> list[jax.extend.core.Jaxpr]:
    closed = (param for param in eqn.params.values() if isinstance(param, jax.extend.core.ClosedJaxpr))
    return [each.jaxpr for each in closed]


def _check_shardings(layouts: dict[str, str]) -> None:
    """Checks that Shardy gets the layouts of the plan, so that the comparison is fair."""
    from .shardy import BLOCK

    for name in ("wqkv", "wo", "w1", "w2"):
        dims = layouts[f"params/blocks/0/{name}"].partition("[")[2].rstrip("]").split(", ")
        axes = [dim.partition("*")[0] if dim[0].isalpha() else None for dim in dims]
        assert axes == list(BLOCK[name]), f"{name} lies {dims} in the plan and {BLOCK[name]} for Shardy"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["jaxpr", layers]:
            fresh.answer(**jaxpr(int(layers)))
        case ["partita", layers]:
            fresh.answer(**partita(int(layers)))
        case []:
            for table in tables():
                table.show()
                table.write()
        case _:
            sys.exit(__doc__)
