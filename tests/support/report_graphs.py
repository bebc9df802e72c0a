"""Graphs that a page has to show: programs of kernels on several device sets, a derivative, and graphs of plans."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from report_plans import WORD, array, planned

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.graph.graph import Graph

ROWS = [pt.Tile({"x": 0}, "data")]


def layer(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def pathways(v: jax.Array) -> Any:
    """The program of section 3 of the Pathways paper (arXiv 2203.12533)."""
    a = pt.kernel(lambda x: x * 2.0, devices=pt.devices(2, "A"))
    b = pt.kernel(lambda x: x + 1.0, devices=pt.devices(2, "B"))
    c = pt.kernel(lambda x: x / 2.0, devices=pt.devices(2, "C"))
    x = a(v)
    y = b(x)
    z = a(c(x))
    return y, z


def diamond(params: Mapping[str, jax.Array], x: jax.Array) -> Any:
    """Two branches on two sets, which meet on a third one: about ten kernels, transfers and redistributions."""
    left, right, judge = pt.Mesh(data=2).on("left"), pt.Mesh(data=4).on("right"), pt.Mesh(data=2).on("judge")
    first, second = (pt.kernel(layer, devices=each, tactics=ROWS) for each in (left, right))
    columns = pt.kernel(layer, devices=right, tactics=[pt.Tile({"w": 0}, "data")])
    both = pt.kernel(lambda x, y: ((x - y) ** 2).mean(), devices=judge, tactics=ROWS)
    x = first(x, params["w"])
    y = columns(second(x, params["w"]) * 2 + 1, params[WORD])
    return both(first(x, params["w"]), y)


def blocks(params: Mapping[str, jax.Array], x: jax.Array) -> jax.Array:
    for number in range(2):
        with jax.named_scope(f"block{number}"):
            x = layer(x, params[f"w{number}"])
    return x


def chained(x: jax.Array, w: jax.Array) -> jax.Array:
    """250 kernels, in turn on three sets: some 500 nodes."""
    every = [pt.kernel(layer, devices=pt.Mesh(data=2).on(name), tactics=ROWS) for name in ("one", "two", "three")]
    for number in range(250):
        x = every[number % 3](x, w)
    return x


PARAMS = {"w": array(16, 16), WORD: array(16, 16)}
LONG = "500 nodes"


@cache
def on_two_sets() -> Plan:
    weights = {name: array(16, 16) for name in ("w0", "w1")}
    plan = pt.plan(blocks, pt.Mesh(stage=2, data=2), weights, array(8, 16)).apply(pt.DataParallel("data", inputs="x"))
    return plan.on("block0", stage=0).on("block1", stage=1)


GRAPHS: Mapping[str, Callable[[], Graph]] = {
    "pathways": lambda: pt.program(pathways).graph(array(2)),
    "a diamond": lambda: pt.program(diamond).graph(PARAMS, array(8, 16)),
    "its gradient": lambda: pt.program(jax.value_and_grad(diamond)).graph(PARAMS, array(8, 16)),
    "a plan on two sets": lambda: on_two_sets().lower("collective"),
    "a plan on one mesh": lambda: planned("a training step").lower("collective"),
    "one kernel": lambda: planned("no mesh").lower(),
    "read from text": lambda: Graph.parse(graph("a diamond").text()),
    LONG: lambda: pt.program(chained).graph(array(8, 16), array(16, 16)),
}


@cache
def graph(name: str) -> Graph:
    return GRAPHS[name]()


def drawn(folder: Path, name: str) -> Path:
    """The page of a graph, in a folder; it is written when it is asked for first."""
    path = folder / f"graph_{name.replace(' ', '_')}.html"
    if not path.exists():
        graph(name).html(path)
    return path
