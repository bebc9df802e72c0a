"""Programs in trips, beside loops that are written by hand: the time of a step, and the memory of temporaries.

    python -m benchmarks.time            # one minute on two cores

A step with micro-batches is measured beside gradients that a `lax.scan` accumulates, and a loss in parts, forward and gradient,
beside a scan over parts of the tokens, and beside two scans over parts of the vocabulary. All run on one device.
"""

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

import partita as pt
from partita.examples import gpt

from .case import in_turn
from .report import Cell, Table, machine

ROUNDS = 11
PARTS = 16
TOKENS, WIDTH, VOCABULARY = 1024, 256, 50257

Tree = Any


class Row(NamedTuple):
    """A program in trips, the loop by hand, and the arguments."""

    name: str
    planned: Callable[[pt.Plan], pt.Plan]
    function: Callable[..., Tree]
    by_hand: Callable[..., Tree]
    args: tuple[Tree, ...]


def in_micro_batches(loss: Callable[[Tree, Tree], Array], trips: int) -> tuple[Callable[..., Tree], Callable[..., Tree]]:
    """A training step, and the same with its gradients accumulated by hand."""

    def apply(params: Tree, opt: Tree, value: Array, grads: Tree) -> Tree:
        updates, opt = gpt.OPTIMIZER.update(grads, opt, params)
        return jax.tree.map(jnp.add, params, updates), opt, value

    def step(params: Tree, opt: Tree, batch: Tree) -> Tree:
        return apply(params, opt, *jax.value_and_grad(loss)(params, batch))

    def by_hand(params: Tree, opt: Tree, batch: Tree) -> Tree:
        parts = jax.tree.map(lambda each: each.reshape(trips, -1, *each.shape[1:]), batch)

        def trip(carry: Tree, part: Tree) -> tuple[Tree, None]:
            return jax.tree.map(jnp.add, carry, jax.value_and_grad(loss)(params, part)), None

        start = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
        value, grads = jax.tree.map(lambda each: each / trips, lax.scan(trip, start, parts)[0])
        return apply(params, opt, value, grads)

    return step, by_hand


def squared_error(params: Tree, batch: Tree) -> Array:
    x = batch["x"]
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.mean((x - batch["y"]) ** 2)


def loss(h: Array, w: Array, y: Array) -> Array:
    """The mean cross-entropy of a language model's head."""
    logits = h @ w
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, y[:, None], -1)[:, 0])


def over_tokens(h: Array, w: Array, y: Array) -> Tree:
    """The loss and its gradients, in a scan over parts of the tokens."""

    def trip(carry: Tree, part: Tree) -> tuple[Tree, Array]:
        value, (dh, dw) = jax.value_and_grad(loss, (0, 1))(part[0], w, part[1])
        return jax.tree.map(jnp.add, carry, (value, dw)), dh

    parts = h.reshape(PARTS, -1, WIDTH), y.reshape(PARTS, -1)
    (value, dw), dh = lax.scan(trip, (jnp.zeros(()), jnp.zeros_like(w)), parts)
    return value / PARTS, (dh.reshape(h.shape) / PARTS, dw / PARTS)


def over_vocabulary(h: Array, w: Array, y: Array) -> Tree:
    """The loss and its gradients, in two scans over parts of the vocabulary: the first one rescales its sums."""
    size = -(-VOCABULARY // PARTS)
    parts = jnp.pad(w, ((0, 0), (0, size * PARTS - VOCABULARY))).reshape(WIDTH, PARTS, size).transpose(1, 0, 2)
    numbers = jnp.arange(PARTS) * size

    def logits(part: Array, first: Array) -> tuple[Array, Array]:
        columns = first + jnp.arange(size)
        return jnp.where(columns[None] < VOCABULARY, h @ part, -jnp.inf), columns

    def sums(carry: tuple[Array, Array, Array], part: tuple[Array, Array]) -> tuple[tuple[Array, Array, Array], None]:
        most, total, chosen = carry
        found, columns = logits(*part)
        new = jnp.maximum(most, found.max(1))
        total = total * jnp.exp(most - new) + jnp.exp(found - new[:, None]).sum(1)
        chosen = chosen + jnp.where(columns[None] == y[:, None], found, 0.0).sum(1)
        return (new, total, chosen), None

    start = jnp.full(TOKENS, -jnp.inf), jnp.zeros(TOKENS), jnp.zeros(TOKENS)
    (most, total, chosen), _ = lax.scan(sums, start, (parts, numbers))

    def gradients(dh: Array, part: tuple[Array, Array]) -> tuple[Array, Array]:
        found, columns = logits(*part)
        d = (jnp.exp(found - most[:, None]) / total[:, None] - (columns[None] == y[:, None])) / TOKENS
        return dh + d @ part[0].T, h.T @ d

    dh, dw = lax.scan(gradients, jnp.zeros_like(h), (parts, numbers))
    value = jnp.mean(jnp.log(total) + most - chosen)
    return value, (dh, dw.transpose(1, 0, 2).reshape(WIDTH, -1)[:, :VOCABULARY])


def rows() -> Iterator[Row]:
    keys = jax.random.split(jax.random.key(0), 4)
    params = [jax.random.normal(keys[0], (512, 512)) / 24] * 8
    batch = {name: jax.random.normal(key, (2048, 512)) for name, key in zip("xy", keys, strict=False)}
    for trips in (4, 16):
        step, by_hand = in_micro_batches(squared_error, trips)
        args = params, gpt.OPTIMIZER.init(params), batch
        yield Row(f"MLP of 8 layers, {trips} micro-batches", pt.Microbatch(trips), step, by_hand, args)
    config = gpt.Config(vocabulary=1024, length=64, layers=4, width=128, heads=4)
    weights = gpt.init(config)
    tokens = np.random.default_rng(0).integers(0, 1024, (32, 65)).astype(np.int32)
    step, by_hand = in_micro_batches(gpt.loss, 4)
    args = weights, gpt.OPTIMIZER.init(weights), {"x": tokens[:, :-1], "y": tokens[:, 1:]}
    yield Row("GPT of 4 layers, 4 micro-batches", pt.Microbatch(4), step, by_hand, args)
    head = (
        jax.random.normal(keys[0], (TOKENS, WIDTH)),
        jax.random.normal(keys[1], (WIDTH, VOCABULARY)) / 16,
        jax.random.randint(keys[2], (TOKENS,), 0, VOCABULARY),
    )
    both = jax.value_and_grad(loss, (0, 1))
    yield Row("loss, tokens in 16 parts", pt.Tile({"h": 0}, f"t:{PARTS}"), both, over_tokens, head)
    yield Row("loss, vocabulary in 16 parts", pt.Tile({"w": 1}, f"t:{PARTS}", padded=True), both, over_vocabulary, head)


def measured(row: Row) -> list[Cell]:
    plan = row.planned(pt.plan(row.function, pt.Mesh(), *row.args))
    steps = {"plan": plan.compile(), "by hand": jax.jit(row.by_hand), "whole": jax.jit(row.function)}
    expected = steps["whole"](*row.args)
    sizes = dict[str, float]()
    for name, step in steps.items():
        jax.tree.map(near, step(*row.args), expected)
        sizes[name] = step.lower(*row.args).compile().memory_analysis().temp_size_in_bytes / 2**20
    times = {name: median(each.wall) for name, each in in_turn(steps, row.args, ROUNDS).items()}
    shown = [1000 * times[name] for name in steps]
    return [row.name, *shown, times["plan"] / times["by hand"], *sizes.values(), sizes["plan"] / sizes["by hand"]]


def near(got: Any, expected: Any) -> None:
    """Checks two results up to rounding, which Adam's first step makes as large as a step where a gradient is near zero."""
    a, b = np.asarray(got, np.float64).ravel(), np.asarray(expected, np.float64).ravel()
    assert np.linalg.norm(a - b) <= 2e-3 * np.linalg.norm(b) + 1e-5, (np.linalg.norm(a - b), np.linalg.norm(b))


def table() -> Table:
    columns = [
        "",
        "plan, ms",
        "by hand, ms",
        "whole, ms",
        "plan / by hand",
        "plan, MiB",
        "by hand, MiB",
        "whole, MiB",
        "plan / by hand",
    ]
    notes = [
        "Medians of calls in turn; MiB of temporaries as XLA allocates them.",
        "The results of the MLP's step are larger than its temporaries in trips, which XLA keeps in their buffers.",
        machine(),
    ]
    return Table("time", "Programs in trips", columns, [measured(row) for row in rows()], notes)


if __name__ == "__main__":
    made = table()
    made.show()
    made.write()
