"""Programs for two processes of four devices each, which `tests/compiler/cli/test_processes.py` runs in both.

Each prints what it has compared. The arrays are the same in both processes; what one has no part of is fetched from the other.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import json
import os
import time
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental.multihost_utils import sync_global_devices

import partita as pt
from partita.compiler.run.addressable import fetched

RANDOM = np.random.default_rng(0)
STAGE = 0.05
"""Seconds that a stage of the pipeline takes."""


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def compared(name: str, found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(fetched(one), fetched(other), rtol=tolerance, atol=tolerance)
    print(name, "equal", flush=True)


def loss(params: dict[str, Any], x: Any) -> Array:
    return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"]) ** 2)


def train(params: dict[str, Any], x: Any) -> tuple[Any, Array]:
    value, grads = jax.value_and_grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


PARAMS, X = {"w": normal(16, 32), "v": normal(32, 8)}, normal(64, 16)


def spmd() -> None:
    """A step over all devices of both."""
    tensor, zero = pt.Megatron("model", column={"params/w": 1}), pt.ZeRO(3, "data", params="params")
    step = pt.jit(train, mesh=pt.Mesh(data=4, model=2), tactics=[pt.DataParallel("data", inputs="x"), tensor, zero])
    params = expected = PARAMS
    value = alone = None
    for _ in range(3):
        params, value = step(params, X)
        expected, alone = jax.jit(train)(expected, X)
    compared("a step over both processes", (params, value), (expected, alone))


def graph() -> None:
    """A program with a set in each process, its gradient, and a set that both share."""
    rows = pt.Tile({"x": 0}, "d")
    first = pt.kernel(lambda w, x: jnp.tanh(x @ w), devices=pt.Mesh(d=4).on("first"), tactics=[rows])
    middle = pt.kernel(lambda x: x * 2.0, devices=pt.Mesh(d=4).on("middle"), tactics=[rows])
    last = pt.kernel(lambda v, x: jnp.mean((x @ v) ** 2), devices=pt.Mesh(d=2).on("last"), tactics=[rows])
    every = jax.devices()
    devices = {"first": every[:4], "middle": every[2:6], "last": every[6:]}

    def both(params: dict[str, Any], x: Any) -> Any:
        return last(params["v"], middle(first(params["w"], x)))

    def alone(params: dict[str, Any], x: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ params["w"]) * 2.0 @ params["v"]) ** 2)

    step = pt.program(jax.value_and_grad(both), devices=devices)
    compared("a graph across both", step(PARAMS, X), jax.jit(jax.value_and_grad(alone))(PARAMS, X))
    home = pt.devices(2, "home")
    back = pt.program(lambda params, x: jax.grad(both)(params, x), devices=devices | {"home": every[:2]}, out_on=home)
    compared("results on one set", back(PARAMS, X), jax.grad(alone)(PARAMS, X))
    path = Path(os.environ["FOLDER"]) / f"program-{jax.process_index()}"
    step.graph(PARAMS, X).save(path)
    compared("the saved graph", pt.load_compiled(path, devices=devices)(PARAMS, X), step(PARAMS, X), 0)
    plan = pt.plan(train, pt.Mesh(stage=2, data=4), PARAMS, X).apply(pt.DataParallel("data", inputs="x"))
    plan = plan.on("params/w", stage=0).on("params/v", stage=1)
    print("a plan on sets differs by less than 1e-3:", plan.check(PARAMS, X) < 1e-3)


def one_by_one() -> None:
    """Kernels and programs whose arguments lie in the other process, outside of one graph."""
    double = pt.kernel(lambda x: x * 2.0, devices=pt.Mesh(d=4).on("left"), tactics=[pt.Tile({"x": 0}, "d")])
    more = pt.kernel(lambda x: x + 1.0, devices=pt.Mesh(d=4).on("right"), tactics=[pt.Tile({"x": 1}, "d")])
    compared("kernels one by one", more(double(X)), X * 2 + 1)
    both = pt.program(lambda x: more(double(x)))
    compared("a program of its own result", both(both(X)), X * 4 + 3)
    compared("a batch", pt.program(jax.vmap(both))(X[None]), (X * 2 + 1)[None])
    for transformed, x in ((jax.vmap(both), X[None]), (jax.grad(lambda x: both(x).sum()), X)):
        try:
            transformed(x)
        except pt.Error as error:
            assert "pt.program(jax.vmap(f))" in error.helps[0]
        else:
            raise AssertionError("it moves a value to another process within a transformation")


def transfers() -> None:
    """Arrays of many dtypes, from some devices to others, in random layouts: each bit of them arrives."""
    every, sums = jax.devices(), list[int]()
    dtypes = ["float32", "bfloat16", "int8", "bool", "uint32", "float16", "int4", "complex64"]
    for number in range(24):
        before, after = (int(RANDOM.choice([1, 2, 4])) for _ in range(2))
        ends = [RANDOM.permutation(8)[:size] for size in (before, after)]
        devices = {"source": [every[at] for at in ends[0]], "target": [every[at] for at in ends[1]]}
        shape = [(8, 4), (4, 8, 4), (8,), (), (0, 4)][number % 5]
        bits = RANDOM.integers(0, 2, shape) if (dtype := dtypes[number % 8]) == "bool" else RANDOM.integers(-8, 8, shape)
        x = np.asarray(jnp.asarray(bits).astype(dtype)) if dtype != "float32" else np.where(bits, bits / 3.0, -0.0).astype("f")
        kernels = list[Any]()
        for name, size in (("source", before), ("target", after)):
            dim = int(RANDOM.integers(len(shape))) if shape else None
            tactics = [] if dim is None or not x.size else [pt.Tile({"x": dim}, "d")]
            mesh = pt.Mesh(d=size).on(name)
            kernels.append(pt.kernel(lambda x: jnp.flip(x, range(x.ndim)), devices=mesh, tactics=tactics))
        source, target = kernels
        moved = fetched(pt.program(lambda x, source=source, target=target: target(source(x)), devices=devices)(x))
        assert moved.dtype == x.dtype, (moved.dtype, x.dtype)
        assert moved.tobytes() == x.tobytes(), (number, shape, dtype, ends)
        sums.append(zlib.crc32(moved.tobytes()))
    print("checksum", zlib.crc32(repr(sums).encode()), flush=True)


def overlap() -> None:
    """Eight inputs through two stages, one in each process, which prints when its own stage ran on each of them."""
    ran = list[tuple[float, float]]()

    def work() -> None:
        start = time.time()
        time.sleep(STAGE)
        ran.append((start, time.time()))

    def stage(x: Array) -> Array:
        jax.debug.callback(work)
        return x + 1.0

    first, second = (pt.kernel(stage, devices=pt.devices(1, name)) for name in ("first", "second"))
    both = pt.program(lambda x: second(first(x)), devices={"first": jax.devices()[:1], "second": jax.devices()[4:5]})
    inputs = [np.full((4,), number, "f") for number in range(8)]
    jax.block_until_ready(both(inputs[0]))
    sync_global_devices("begin")
    ran.clear()
    results = [jax.block_until_ready(each) for each in [both(x) for x in inputs]]
    compared("eight inputs", results, [x + 2.0 for x in inputs])
    print("ran", json.dumps(ran), flush=True)


def main() -> None:
    for each in (spmd, graph, one_by_one, transfers, overlap):
        each()


def endless() -> None:
    """Steps that never end."""
    w = jnp.ones((8, 8))
    step = pt.jit(lambda w, x: w - 0.1 * (x.T @ x @ w), mesh=pt.Mesh(d=8), tactics=[pt.Tile({"x": 0}, "d")])
    for number in range(1_000_000):
        w = jax.block_until_ready(step(w, X[:, :8]))
        if number == 20:
            print("running", flush=True)
