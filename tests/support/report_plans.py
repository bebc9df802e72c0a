"""Plans that a page has to show: each with what makes it particular."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
from models import Transformer, chain, gram, train_step
from strategies import strategy

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=4, model=2)
WORD = "</script><b>größe"
"""A name that would end an element of a page, in no language in particular."""


def array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def loops(ws: jax.Array, x: jax.Array, least: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A scan with a branch in it, in a named scope, and a loop of unknown trip count."""

    def body(c: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        h = jax.nn.relu(c @ w)
        h = jax.lax.cond(jnp.sum(h) > 0, lambda: h @ w.T, lambda: h * 2.0)
        return h, jnp.sum(h)

    with jax.named_scope("layers"):
        x, sums = jax.lax.scan(body, x, ws)
    return jax.lax.while_loop(lambda c: jnp.sum(c) > least, lambda c: c * 0.5, x), sums


def named(params: Mapping[str, jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Names in any language, an op that runs unpartitioned, and a stop."""
    y = pt.tag(x @ params[WORD], "тег<i>")
    return jnp.sort(y, axis=0), jnp.linalg.eigh(y.T @ y)[0]


def stencil(u: jax.Array) -> jax.Array:
    for step in range(3):
        padded = jnp.pad(u, 1)
        u = pt.tag(u + 0.1 * (padded[2:] - 2 * u + padded[:-2]), f"u{step}")
    return u


def chained(mesh: pt.Mesh) -> Plan:
    return pt.plan(chain, mesh, array(256, 8), array(8, 16), array(16, 8))


def grams(layers: list[dict[str, jax.Array]]) -> list[jax.Array]:
    """The same conflict in each layer."""
    return [gram(layer["x"]) for layer in layers]


def doubled(xs: list[jax.Array]) -> list[jax.Array]:
    return [x * 2 for x in xs]


def summed(x: jax.Array) -> jax.Array:
    return jnp.sum(x * 2, axis=3)


def stacked(x: jax.Array, w: jax.Array) -> jax.Array:
    """Thirty layers, each in a scope of its own."""
    for layer in range(30):
        with jax.named_scope(f"layer_{layer}"):
            x = jnp.tanh(x @ w)
    return x


def long(w: jax.Array, x: jax.Array) -> jax.Array:
    """About 10,000 ops."""
    for _ in range(2_500):
        x = jnp.tanh(x @ w) + x * 2
    return jnp.sum(x)


LOOPED = [pt.DataParallel("data", inputs="x"), pt.Tile({"ws": 2}, "model"), pt.Tile({"ws": 1}, "data")]
LONG_TACTICS = [pt.DataParallel("data", inputs="x"), pt.Tile({"w": 1}, "model")]
CUBE = pt.Mesh(a=2, b=2, c=2)
PLANS: Mapping[str, Callable[[], Plan]] = {
    "a training step": lambda: pt.plan(train_step, MESH, *Transformer(3).shapes()).apply(*strategy("BP+MP+Z3")),
    "many tactics": lambda: pt.plan(doubled, MESH, [array(8, 8)] * 9).apply(
        *(pt.Tile({f"xs/{at}": at % 2}, "data") for at in range(9))
    ),
    "nothing placed": lambda: chained(MESH),
    "no collectives": lambda: chained(MESH).tile("x", 0, "data"),
    "no mesh": lambda: chained(pt.Mesh()),
    "a conflict": lambda: pt.plan(gram, pt.Mesh(data=8), array(64, 16)).tile("x", 0, "data"),
    "equal conflicts": lambda: pt.plan(grams, pt.Mesh(data=8), [{"x": array(64, 16)}] * 3).tile("layers/*/x", 0, "data"),
    "loops": lambda: pt.plan(loops, MESH, array(8, 64, 64), array(128, 64), array()).apply(*LOOPED),
    "a rewriting": lambda: chained(MESH).tile("x", 0, "data").rewrite("reassociate").tile("w1", 1, "model"),
    "named layers": lambda: pt.plan(stacked, MESH, array(32, 8), array(8, 8)).tile("x", 0, "data").tile("w", 0, "model"),
    "names": lambda: pt.plan(named, MESH, {WORD: array(12, 10)}, array(30, 12)).tile("x", 0, "data", padded=True),
    "windows": lambda: pt.plan(stencil, pt.Mesh(data=8), array(512)).widen(["u0", "u1"]).tile("u", 0, "data"),
    "rank 4": lambda: pt.plan(summed, CUBE, array(4, 8, 6, 16)).tile("x", 0, "a").tile("x", 1, "b").tile("x", 3, "c"),
}


LONG = "10,000 ops"
"""A plan that takes seconds to write, and that only the tests of large programs ask for."""


@cache
def planned(name: str) -> Plan:
    return PLANS[name]() if name != LONG else pt.plan(long, MESH, array(8, 8), array(64, 8)).apply(*LONG_TACTICS)


def written(folder: Path, name: str) -> Path:
    """The page of a plan, in a folder; it is written when it is asked for first."""
    path = folder / f"{name.replace(' ', '_')}.html"
    if not path.exists():
        planned(name).html(path)
    return path
