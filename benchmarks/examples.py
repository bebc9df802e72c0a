"""Every plan of the examples as a graph, on two device sets, and saved: how far each is from `jax.jit`.

    python -m benchmarks.examples            # a quarter of an hour on two cores
    python -m benchmarks.examples demo       # those whose names begin so

On two sets of four devices, the first half of the program's scopes is on one set and the rest on the other; where a program has
no scopes, the first half of its forward ops. What is saved is loaded, and called with dicts in place of the model's classes.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import track

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.jax_private import tree
from partita.compiler.plan.named_laws import scope_of
from partita.tests.support.example_plans import examples

from .report import Cell, Table, machine

GRANULARITIES = "whole", "collective"
DEEPEST = 8


def main(beginning: str) -> Table:
    rows = list[Sequence[Cell]]()
    for name, made in track(examples().items(), "examples"):
        if name.startswith(beginning):
            plan, args = made()
            given = jax.tree.map(drawn, [*args])
            with jax.set_mesh(whole_mesh(plan)):
                wanted = jax.jit(plan.source.traced.function.fn)(*given)
            found = [largest(plan.lower(how).run(*given), wanted) for how in GRANULARITIES]
            rows.append([name, *found, *on_two_sets(plan, given, wanted), *saved(plan, given)])
            # What is compiled is not needed again, and would take 20 GB for all examples.
            jax.clear_caches()
    columns = ["", *GRANULARITIES, "on two sets", "collective", "transfers", "bytes", "saved, bytes", "loaded"]
    notes = [
        "The largest difference from `jax.jit` of any result, over its largest element; of what is loaded, from the graph.",
        "On two sets the same tactics plan the program, on the mesh that is left. Empty: it has one op, or they do not fit.",
        machine(),
    ]
    return Table("examples", "Every plan of the examples, as graphs", columns, rows, notes)


def whole_mesh(plan: Plan) -> jax.sharding.Mesh:
    """JAX's mesh of a plan's axes, which the constraints of a program name."""
    axes = plan.mesh.axes
    return jax.make_mesh((*axes.values(),), (*axes,), axis_types=(jax.sharding.AxisType.Auto,) * len(axes))


def drawn(leaf: Any) -> Any:
    """An array in place of a shape."""
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    random = np.random.default_rng(0)
    if jnp.issubdtype(leaf.dtype, jnp.floating):
        return jnp.asarray(random.standard_normal(leaf.shape) / 8, leaf.dtype)
    return jnp.asarray(random.integers(0, 2, leaf.shape), leaf.dtype)


def on_two_sets(plan: Plan, args: Sequence[Any], wanted: Any) -> list[Cell]:
    """How far the plan is from `jax.jit` with one half of it on each of two device sets, and what crosses."""
    traced, mesh = plan.source.traced, {**plan.source.mesh.axes}
    first = next(iter(mesh), "data")
    mesh = {"stage": 2, **mesh, first: max(mesh.get(first, 2) // 2, 1)}
    try:
        with jax.set_mesh(whole_mesh(plan)):
            made = pt.replay(traced.function.fn, pt.Mesh(**mesh), plan.trace, *args)
    except pt.Error:
        return [None] * 4
    for number, names in enumerate(halves(made)):
        for each in names:
            # It may be on the other half already, as all of a loop.
            with suppress(pt.Error):
                made = made.on(each, stage=number)
    if made.table.sets is None:
        return [None] * 4
    graphs = [made.lower(how) for how in GRANULARITIES]
    crossing = made.transfers()
    return [*(largest(each.run(*args), wanted) for each in graphs), len(crossing), sum(graphs[0].transferred().values())]


def halves(plan: Plan) -> tuple[Sequence[str], Sequence[str]]:
    """The first half of the program's scopes, or of its forward ops, and the rest."""
    nodes = [node for node in plan.source.program.nodes if not node.region and node.results]
    scopes = list(dict.fromkeys(scope for node in nodes if (scope := scope_of(plan, node))))
    for depth in range(1, DEEPEST):
        cut = list(dict.fromkeys("/".join(each.split("/")[:depth]) for each in scopes if each.count("/") >= depth - 1))
        if len(cut) >= 4:
            return cut[: len(cut) // 2], cut[len(cut) // 2 :]
    direction = plan.source.traced.sources.direction
    ops = [node for node in nodes if direction(node.op).name != "backward" and node.op_name != "constant"]
    names = [plan.source.addresses.names[node.results[0]] for node in ops]
    return names[: len(names) // 2], names[len(names) // 2 :]


def saved(plan: Plan, args: Sequence[Any]) -> list[Cell]:
    """The bytes of the saved plan, and how far what is loaded is from its graph."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan"
        plan.lower().save(path)
        loaded = pt.load_compiled(path)
        found = loaded(*by_names(args))
        return [path.stat().st_size, largest(found, plan.lower().run(*args))]


def by_names(args: Sequence[Any]) -> Iterator[Any]:
    """The arguments as dicts by the names of their leaves."""
    for each in args:
        made: dict[str, Any] = {}
        for keys, leaf in tree.tree_flatten_with_path(each)[0]:
            *outer, last = map(str, map(_key, keys)) if keys else ("",)
            inner = made
            for key in outer:
                inner = inner.setdefault(key, {})
            inner[last] = leaf
        yield made.get("", made)


def _key(key: Any) -> Any:
    return next(getattr(key, each) for each in ("key", "idx", "name") if hasattr(key, each))


def largest(found: Any, wanted: Any) -> float:
    """The largest difference of any result, over its largest element. Results are paired by their names."""
    pairs = zip(named(found), named(wanted), strict=True)
    return max((float(np.abs(a - b).max() / (np.abs(b).max() + 1e-6)) for (_, a), (_, b) in pairs if a.size), default=0.0)


def named(results: Any) -> list[tuple[str, np.ndarray]]:
    leaves, _ = tree.tree_flatten_with_path(results)
    bare = (jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x for _, x in leaves)
    names = ("/".join(str(_key(key)) for key in keys) for keys, _ in leaves)
    return sorted(zip(names, (np.asarray(x, np.float64) for x in bare), strict=True), key=lambda pair: pair[0])


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 8)
    table = main(" ".join(sys.argv[1:]))
    table.show()
    if len(sys.argv) == 1:
        table.write()
