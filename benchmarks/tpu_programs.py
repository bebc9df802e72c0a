"""The programs that `benchmarks.tpu` compiles, on 16 chips, each with its mesh and its tactics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import partita as pt

from . import tpu_model
from .tpu_model import Around, Config

Tree = Any

FLAT = pt.Mesh(data=16)
SQUARE = pt.Mesh(data=4, model=4)

BP = pt.DataParallel("data", inputs="batch/*")
MP = pt.Megatron("model", column={"**/wqkv": -2, "**/w1": -1}, row={"**/wo": -3, "**/w2": -2})
Z2 = pt.ZeRO(2, "data", params="params", optimizer="opt")
Z3 = pt.ZeRO(3, "data", params="params", optimizer="opt")

WAYS: dict[str, tuple[pt.Mesh, list[pt.Tactic]]] = {
    "BP": (FLAT, [BP]),
    "BP+MP": (SQUARE, [BP, MP]),
    "Z2": (FLAT, [BP, Z2]),
    "Z3": (FLAT, [BP, Z3]),
}


@dataclass(frozen=True)
class Program:
    """A function that takes what surrounds its activations, and the tactics that say where its ranges lie."""

    name: str
    function: Callable[[Around], Callable[..., Tree]]
    args: Sequence[Tree]
    mesh: pt.Mesh
    tactics: Sequence[pt.Tactic]


def programs() -> list[Program]:
    return [
        lookup(),
        mlp(),
        *transformers(Config(4, 1024)),
        *transformers(Config(16, 2048)),
        scanned(Config(16, 2048, scanned=True)),
    ]


def transformers(config: Config) -> list[Program]:
    """The training step with its layers unrolled, in each of the ways."""
    args = tpu_model.shapes(config)
    return [
        Program(f"{config.layers} layers, {way}", tpu_model.train_step, args, mesh, tactics)
        for way, (mesh, tactics) in WAYS.items()
    ]


def scanned(config: Config) -> Program:
    """The training step that scans over its layers and recomputes them."""
    name = f"{config.layers} layers, Z3, scan with remat"
    return Program(name, tpu_model.train_step, tpu_model.shapes(config), *WAYS["Z3"])


def lookup() -> Program:
    """An embedding alone, its table and its tokens on one axis."""

    def function(around: Around) -> Callable[..., Tree]:
        return lambda table, tokens: around(table[tokens])

    args = jax.ShapeDtypeStruct((32_000, 1024), jnp.bfloat16), jax.ShapeDtypeStruct((32, 512), jnp.int32)
    return Program("lookup", function, args, FLAT, [pt.Tile({"tokens": 0}, "data"), pt.Tile({"table": 0}, "data")])


def mlp() -> Program:
    """Four square layers of width 1024 and a step of Adam, in float32."""

    def function(around: Around) -> Callable[..., Tree]:
        def loss(params: Tree, batch: Tree) -> jax.Array:
            x = batch["x"]
            for w in params:
                x = around(jax.nn.relu(x @ w))
            return jnp.mean((x - batch["y"]) ** 2)

        def train_step(params: Tree, opt: Tree, batch: Tree) -> tuple[Tree, Tree, jax.Array]:
            value, grads = jax.value_and_grad(loss)(params, batch)
            return *tpu_model.updated(params, opt, grads), value

        return train_step

    params = [jax.ShapeDtypeStruct((1024, 1024), jnp.float32)] * 4
    rows = jax.ShapeDtypeStruct((256, 1024), jnp.float32)
    args = params, tpu_model.state(params), {"x": rows, "y": rows}
    return Program("MLP, Z3", function, args, *WAYS["Z3"])
