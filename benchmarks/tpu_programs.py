"""The programs that `benchmarks.tpu` compiles, on 16 chips, each with its mesh and its tactics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

import partita as pt

from . import tpu_model
from .tpu_layers import Experts, Llama
from .tpu_model import Around, Config

Tree = Any

FLAT = pt.Mesh(data=16)
SQUARE = pt.Mesh(data=4, model=4)

BP = pt.DataParallel("data", inputs="batch/*")
MP = pt.Megatron("model", column={"**/wqkv": -2, "**/w1": -1}, row={"**/wo": -3, "**/w2": -2})
LLAMA_MP = pt.Megatron(
    "model",
    column={"**/wq": -3, "**/w[kv]": -2, "**/gate": -1, "**/up": -1},
    row={"**/wo": -4, "**/down": -2},
)
EP = pt.ExpertParallel("data", experts={"**/experts": -3})
Z2 = pt.ZeRO(2, "data", params="params", optimizer="opt")
Z3 = pt.ZeRO(3, "data", params="params", optimizer="opt")

Places = Mapping[str, PartitionSpec]

BY_ROW = {name: PartitionSpec("data") for name in ("rows", "heads", "units")}
BY_HEAD = {**BY_ROW, **{name: PartitionSpec("data", None, "model") for name in ("heads", "units")}}
BY_EXPERT = {**BY_ROW, "slots, by row": PartitionSpec(None, "data"), "slots, by expert": PartitionSpec("data")}

Way = tuple[pt.Mesh, Sequence[pt.Tactic], Places]

WAYS: dict[str, Way] = {
    "BP": (FLAT, [BP], BY_ROW),
    "BP+MP": (SQUARE, [BP, MP], BY_HEAD),
    "Z2": (FLAT, [BP, Z2], BY_ROW),
    "Z3": (FLAT, [BP, Z3], BY_ROW),
}
WAYS_OF_LLAMA: dict[str, Way] = {
    "BP+MP": (SQUARE, [BP, LLAMA_MP], BY_HEAD),
    "Z3": (FLAT, [BP, Z3], BY_ROW),
    "BP+MP+Z3": (SQUARE, [BP, LLAMA_MP, Z3], BY_HEAD),
}
WAYS_OF_EXPERTS: dict[str, Way] = {
    "BP+EP": (FLAT, [EP, BP], BY_EXPERT),
    "Z3+EP": (FLAT, [EP, BP, Z3], BY_EXPERT),
}


@dataclass(frozen=True)
class Program:
    """A function that takes what surrounds its activations, and the tactics that say where its ranges lie."""

    name: str
    function: Callable[[Around], Callable[..., Tree]]
    args: Sequence[Tree]
    mesh: pt.Mesh
    tactics: Sequence[pt.Tactic]
    places: Places
    """Where the activations lie, by their names: the constraints of a peer."""


def programs() -> list[Program]:
    llama, experts = Llama(layers=4), Experts(layers=4)
    return [
        lookup(),
        mlp(),
        *(transformer(Config(4, 1024), way) for way in WAYS.items()),
        *(transformer(Config(16, 2048), way) for way in WAYS.items()),
        transformer(Config(16, 2048, scanned=True), ("Z3", WAYS["Z3"])),
        *(transformer(Config(4, 1024, batch=128), (way, WAYS[way]), "4 x tokens, ") for way in ("BP+MP", "Z3")),
        *(transformer(llama, way, "Llama, ") for way in WAYS_OF_LLAMA.items()),
        transformer(Llama(scanned=True), ("BP+MP+Z3", WAYS_OF_LLAMA["BP+MP+Z3"]), "Llama, "),
        *(transformer(experts, way, "experts, ") for way in WAYS_OF_EXPERTS.items()),
    ]


def transformer(config: Config, named_way: tuple[str, Way], kind: str = "") -> Program:
    """The training step with its layers unrolled, or iterated over by a scan and recomputed."""
    name, way = named_way
    scan = ", scan with remat" if config.scanned else ""
    step = partial(tpu_model.train_step, config)
    return Program(f"{kind}{config.layers} layers, {name}{scan}", step, tpu_model.shapes(config), *way)


def lookup() -> Program:
    """An embedding alone, its table and its tokens on one axis."""

    def function(around: Around) -> Callable[..., Tree]:
        return lambda table, tokens: around(table[tokens], "rows")

    args = jax.ShapeDtypeStruct((32_000, 1024), jnp.bfloat16), jax.ShapeDtypeStruct((32, 512), jnp.int32)
    return Program("lookup", function, args, FLAT, [pt.Tile({"tokens": 0}, "data"), pt.Tile({"table": 0}, "data")], BY_ROW)


def mlp() -> Program:
    """Four square layers of width 1024 and a step of Adam, in float32."""

    def function(around: Around) -> Callable[..., Tree]:
        def loss(params: Tree, batch: Tree) -> jax.Array:
            x = batch["x"]
            for w in params:
                x = around(jax.nn.relu(x @ w), "rows")
            return jnp.mean((x - batch["y"]) ** 2)

        def train_step(params: Tree, opt: Tree, batch: Tree) -> tuple[Tree, Tree, jax.Array]:
            value, grads = jax.value_and_grad(loss)(params, batch)
            return *tpu_model.updated(params, opt, grads), value

        return train_step

    params = [jax.ShapeDtypeStruct((1024, 1024), jnp.float32)] * 4
    rows = jax.ShapeDtypeStruct((256, 1024), jnp.float32)
    args = params, tpu_model.state(params), {"x": rows, "y": rows}
    return Program("MLP, Z3", function, args, *WAYS["Z3"])
