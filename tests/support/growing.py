"""Programs of any size, and all that a plan of one can be asked: on many devices, over many axes, with many leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from cProfile import Profile
from functools import partial
from math import isqrt
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax

import partita as pt
from partita.compiler.plan.history import prefixes

Function = Callable[..., Any]
Made = tuple[pt.Plan, pt.Plan, Function, tuple[Any, ...]]
"""A plan without tactics, the plan with them, the function and its arguments."""


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def planned(function: Function, mesh: pt.Mesh, args: tuple[Any, ...], *tactics: Callable[[pt.Plan], pt.Plan]) -> Made:
    start = pt.plan(function, mesh, *args)
    return start, start.apply(*tactics), function, args


def rolled(x: jax.Array) -> jax.Array:
    return jnp.roll(x, 1, 0) + x


def turned(x: jax.Array) -> jax.Array:
    return x[::-1] + x


def strided(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, w, (2,), "SAME")


def summed(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x, 0)


def reshaped(x: jax.Array) -> jax.Array:
    return x.reshape(-1, x.shape[0] // 4) * 2


def joined(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.concatenate([x, y], 0) * 2


def sorted_rows(x: jax.Array) -> jax.Array:
    return jnp.sort(x, 0)


def inner_rows(x: jax.Array) -> jax.Array:
    return jnp.sin(x)[1:-1].sum(0)


def chained(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
    return (x @ w) @ v


def squared(x: jax.Array) -> jax.Array:
    return x @ x


def step(weights: list[jax.Array], x: jax.Array, y: jax.Array) -> list[jax.Array]:
    """A training step of an MLP."""

    def loss(weights: list[jax.Array]) -> jax.Array:
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return jnp.mean((h - y) ** 2)

    gradients = cast("list[jax.Array]", jax.grad(loss)(weights))  # pyright: ignore[reportUnknownMemberType]
    return [w - 0.1 * d for w, d in zip(weights, gradients, strict=True)]


Tree = dict[str, jax.Array]


def descend(params: Tree, x: jax.Array) -> Tree:
    """A training step of many weights, each used once."""

    def loss(params: Tree) -> jax.Array:
        return sum(((x @ w).mean() for w in params.values()), x[0, 0])

    gradients = cast("Tree", jax.grad(loss)(params))  # pyright: ignore[reportUnknownMemberType]
    return {key: params[key] - 0.1 * gradients[key] for key in params}


def crossed(tree: Tree) -> Tree:
    return {key: leaf + leaf.T for key, leaf in tree.items()}


def crossed_twice(tree: Tree) -> Tree:
    return {key: jnp.tanh(leaf @ leaf.T) @ jnp.sin(leaf + leaf.T) for key, leaf in tree.items()}


def transformed(tree: Tree) -> Tree:
    return {key: jnp.fft.fft(leaf, axis=0) for key, leaf in tree.items()}


def update(params: Tree, mean: Tree, square: Tree, gradient: Tree) -> tuple[Tree, Tree, Tree]:
    """Adam's update."""
    mean = {key: 0.9 * mean[key] + 0.1 * gradient[key] for key in mean}
    square = {key: 0.99 * square[key] + 0.01 * gradient[key] ** 2 for key in square}
    return {key: params[key] - mean[key] / (jnp.sqrt(square[key]) + 1e-8) for key in params}, mean, square


def devices(count: int, two: bool = False) -> dict[str, Callable[[], Made]]:
    """Programs along one dim, on so many devices of one axis, or of two."""
    mesh = pt.Mesh(a=isqrt(count), b=isqrt(count)) if two else pt.Mesh(a=count)
    rows = 8 * count

    def tiled(function: Function, *args: jax.ShapeDtypeStruct, dim: int = 0, padded: bool = False) -> Callable[[], Made]:
        tactics = [pt.Tile({"x": dim}, axis, padded=padded) for axis in mesh]
        return partial(planned, function, mesh, args, *(tactics[:1] if padded else tactics))

    return {
        "roll": tiled(rolled, f32(rows, 4)),
        "reverse": tiled(turned, f32(rows, 4)),
        "strided convolution": tiled(strided, f32(1, 4, rows), f32(4, 4, 3), dim=2),
        "cumsum": tiled(summed, f32(rows, 4)),
        "reshape": tiled(reshaped, f32(rows, 4)),
        "concatenate": tiled(joined, f32(rows, 4), f32(rows // 2, 4)),
        "sort": tiled(sorted_rows, f32(rows, 4)),
        "padded rows": tiled(inner_rows, f32(rows - 3, 4), padded=True),
        "matmuls": tiled(chained, f32(rows, 4), f32(4, rows), f32(rows, 4)),
    }


def axes(count: int) -> dict[str, Callable[[], Made]]:
    """Programs over so many axes of size 2: all on one dim, in turn on two, and each on its own."""
    names, size = [f"a{at}" for at in range(count)], 2**count
    mesh, square = pt.Mesh(dict.fromkeys(names, 2)), f32(size, size)

    def product(x: jax.Array) -> jax.Array:
        dims = list(range(count))
        return jnp.einsum(x, dims, x, [*dims[1:], count], [0, count])  # pyright: ignore

    whole = [pt.Tile({"x": 0}, axis) for axis in names]
    halves = [pt.Tile({"x": at % 2}, axis) for at, axis in enumerate(names)]
    apart = [pt.Tile({"x": at}, axis) for at, axis in enumerate(names)]
    third = count // 3
    training = [
        pt.DataParallel(tuple(names[:third]), inputs=["x", "y"]),
        *(pt.Tile({"weights/0": 1}, axis) for axis in names[third : 2 * third]),
        *(pt.Tile({"weights/1": 1}, axis) for axis in names[2 * third :]),
        *(pt.Tile({"weights/*": 0}, axis) for axis in names[:third]),
    ]
    return {
        "x @ x, one dim": partial(planned, squared, mesh, (square,), *whole),
        "x @ x, two dims": partial(planned, squared, mesh, (square,), *halves),
        "product of many dims": partial(planned, product, mesh, (f32(*[4] * count),), *apart),
        "training step": partial(planned, step, mesh, ([square] * 3, square, square), *training),
        "roll, one dim": partial(planned, rolled, mesh, (f32(4 * size, 4),), *whole),
    }


def leaves(count: int) -> dict[str, Callable[[], Made]]:
    """Adam's update of trees with so many leaves in all."""
    args = tuple({f"w{at}": f32(8, 8) for at in range(count // 4)} for _ in range(4))
    tactics = [pt.Tile({"params/*": 0}, "data"), pt.ZeRO(3, "model", params="params")]
    return {"Adam": partial(planned, update, pt.Mesh(data=4, model=2), args, *tactics)}


def many(count: int) -> dict[str, Callable[[], Made]]:
    """Programs with so many parameters, constraints, conflicts or stops; and with names for so many values in one tactic."""

    def constrained(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        return [pt.constrain(x * at, "data, _") + pt.constrain(y * at, "_, data") for at in range(count)]

    mesh, names = pt.Mesh(data=8), [f"w{at}" for at in range(count)]
    tree, tiled = dict.fromkeys(names, f32(8, 8)), pt.Tile({"tree/*": 0}, "data")
    unlike = {name: f32(8, 8 + at) for at, name in enumerate(names)}
    return {
        "FSDP": partial(planned, descend, mesh, (tree, f32(16, 8)), pt.DataParallel("data", inputs="x"), pt.FSDP("data")),
        "constraints": partial(planned, constrained, mesh, (f32(16, 16), f32(16, 16)), pt.Annotated()),
        "conflicts": partial(planned, crossed, mesh, (tree,), tiled),
        "conflicts that touch in pairs": partial(planned, crossed_twice, mesh, (tree,), tiled),
        "stops that are alike": partial(planned, transformed, mesh, (tree,), tiled),
        "stops": partial(planned, transformed, mesh, (unlike,), tiled),
        "names": partial(planned, crossed, mesh, (tree,), pt.Tile({f"tree/{name}": 0 for name in names}, "data")),
    }


def calls(question: Callable[[], object]) -> int:
    """How many calls of functions an answer takes."""
    profile = Profile(subcalls=False)
    profile.enable()
    question()
    profile.disable()
    return sum(each.callcount for each in profile.getstats())


def questions(made: Made, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """All that a plan can be asked; those that several others need come first."""
    start, plan, function, args = made
    file, page = folder / "plan.partita", folder / "plan.html"
    yield "tactics", lambda: prefixes(plan)
    yield "another tactic", lambda: plan.propagate(next(iter(plan.mesh))).counts()
    yield "counts", plan.counts
    yield "collectives", lambda: str(plan.collectives())
    yield "bytes_per_device", plan.bytes_per_device
    yield "flops_per_device", plan.flops_per_device
    yield "layout", lambda: str(plan.layout())
    yield "conflicts", lambda: str(plan.conflicts)
    yield "blocked", lambda: str(plan.blocked)
    yield "cures", lambda: [str(each.cure) for each in plan.blocked[:1]]
    yield "resolutions", lambda: [str(each.resolutions) for each in plan.conflicts[:1]]
    yield "all resolutions", lambda: [each.resolutions for each in plan.conflicts]
    yield "resolve", lambda: plan.apply(pt.Resolve())
    yield "whole", lambda: str(plan.whole)
    yield "annotations", lambda: str(plan.annotations)
    yield "explain a value", lambda: str(plan.explain(plan.arguments()[0]))
    yield "explain all values", lambda: str(plan.explain("**"))
    yield "explain a collective", lambda: _explained(plan)
    yield "memory", lambda: str(plan.memory())
    yield "silent", lambda: str(plan.silent())
    yield "ranges", lambda: str(plan.ranges())
    yield "diff", lambda: str(plan.diff(start))
    yield "repr", lambda: repr(plan)
    yield "print", lambda: str(plan)
    yield "save", lambda: plan.save(file)
    yield "replay", lambda: pt.replay(function, file, *args)
    yield "spmd", lambda: str(plan.spmd())
    yield "lower", lambda: plan.lower("collective").text()
    yield "html", lambda: plan.html(page)
    yield "rewrites", lambda: str(plan.rewrites())


def _explained(plan: pt.Plan) -> Sequence[str]:
    return [str(plan.explain(each)) for each in plan.collectives()[:1]]
