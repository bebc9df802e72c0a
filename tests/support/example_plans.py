"""The plans of the examples: each model with each of its ways to be partitioned, made when asked for."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh as DeviceMesh

import partita as pt
from partita.compiler.api.plan import Plan
from partita.examples import (
    annotated_gpt,
    decode,
    demo,
    equinox_mixer,
    flax_transformer,
    gpt,
    graph_network,
    heat,
    llama,
    lstm,
    mlp,
    moe,
    resnet,
    sampler,
    scan_layers,
    text,
    unet,
    vocabulary,
)

DATA8, BOTH = pt.Mesh(data=8), pt.Mesh(data=4, model=2)
LARGER = gpt.Config(length=256, layers=4, width=256)
SMALL_LLAMA = llama.Config(vocabulary=503)
Step = Callable[..., Any]
Made = tuple[Plan, Sequence[Any]]


@lru_cache(maxsize=1)
def begun(step: Step, mesh: pt.Mesh, args: Callable[[], Sequence[Any]]) -> Made:
    """A model before any tactic: it is traced once for those of its ways that are made one after another."""
    made = args()
    return pt.plan(step, mesh, *made), made


def planned(step: Step, mesh: pt.Mesh, args: Callable[[], Sequence[Any]], tactics: Sequence[Any]) -> Made:
    plan, made = begun(step, mesh, args)
    return plan.apply(*tactics), made


@cache
def training(config: gpt.Config) -> Sequence[Any]:
    params = gpt.init(config)
    return params, gpt.OPTIMIZER.init(params), next(text.batches(text.corpus(200_000), demo.BATCH, config.length))


def ways(name: str, step: Step, mesh: pt.Mesh, args: Callable[[], Sequence[Any]], table: Any) -> dict[str, Callable[[], Made]]:
    """A model as it is and in each of its ways."""
    rows = {"plain": (), **table}
    return {f"{name}, {way}": partial(planned, step, mesh, args, tactics) for way, tactics in rows.items()}


@cache
def mixer() -> tuple[Step, tuple[Any, ...]]:
    return equinox_mixer.create()


def transformers() -> dict[str, Callable[[], Made]]:
    """The demo in two sizes, a model of flax, and a Llama."""
    schedules = list(demo.TACTICS.values())
    steps = {"batch": schedules[:1], "Megatron": schedules[:2], "ZeRO-3": schedules}
    state = flax_transformer.create_state
    return {
        **ways("demo", gpt.train_step, BOTH, lambda: training(demo.CONFIG), steps),
        **ways("larger demo", gpt.train_step, BOTH, lambda: training(LARGER), steps),
        **ways(
            "flax transformer",
            flax_transformer.train_step,
            BOTH,
            lambda: (state(), flax_transformer.random_batch()),
            flax_transformer.WAYS,
        ),
        **ways("Llama", llama.train_step, llama.MESH, lambda: llama.arguments(SMALL_LLAMA), {"ZeRO-3": llama.TACTICS}),
    }


def networks() -> dict[str, Callable[[], Made]]:
    """Experts, a graph, images."""
    graph = graph_network.Config()
    return {
        **ways("experts", moe.train_step, DATA8, lambda: moe.arguments(moe.Config()), {"experts": moe.TACTICS}),
        **ways(
            "graph network",
            graph_network.train_step,
            DATA8,
            lambda: (graph_network.parameters(graph), graph_network.random_graph(graph)),
            {"edges": [graph_network.EDGES]},
        ),
        **ways(
            "U-Net", unet.train_step, BOTH, lambda: (unet.create_state(), unet.random_images(), jax.random.key(2)), unet.WAYS
        ),
        **ways("mixer", mixer()[0], BOTH, lambda: mixer()[1], equinox_mixer.WAYS),
        **ways("ResNet", resnet.train_step, BOTH, lambda: (resnet.create_state(), resnet.random_batch()), resnet.WAYS),
        **ways(
            "vocabulary",
            vocabulary.train_step,
            pt.Mesh(data=2, model=4),
            lambda: vocabulary.arguments(vocabulary.Config()),
            {"vocabulary": [vocabulary.DATA, vocabulary.VOCABULARY]},
        ),
    }


def loops() -> dict[str, Callable[[], Made]]:
    """A recurrence, layers in a scan, steps in time, tokens one after another."""
    rows = [pt.DataParallel("data", inputs="x")]
    recurrent = {
        "data": [lstm.DATA],
        "units": [lstm.DATA, lstm.UNITS],
        "ZeRO-3": [lstm.DATA, pt.ZeRO(3, "data", params="params")],
    }
    layers = {"data": rows, "ZeRO-3": [*rows, pt.ZeRO(3, "data", params="params")]}
    decoded = {
        f"decode, {way}": partial(planned, decode.decode, decode.MESH, partial(decode.arguments, config), tactics)
        for way, (config, tactics) in decode.WAYS.items()
    }
    return {
        **ways("lstm", lstm.train_step, lstm.MESH, lambda: lstm.arguments(lstm.Config()), recurrent),
        **ways("scanned layers", scan_layers.train_step, DATA8, scan_layers.arguments, layers),
        **ways("heat", heat.heat, DATA8, lambda: (heat.argument(),), {"rows": [pt.Tile({"u": 0}, "data")]}),
        **decoded,
    }


def annotated_mesh() -> DeviceMesh:
    """JAX's mesh for the shardings of the annotated transformer."""
    axes = annotated_gpt.MESH.axes
    devices = np.array(jax.devices()[: annotated_gpt.MESH.size]).reshape(tuple(axes.values()))
    return DeviceMesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def annotated() -> Made:
    """The transformer whose layouts stand in its program and on its arguments."""
    mesh = annotated_mesh()
    with jax.set_mesh(mesh):
        return planned(annotated_gpt.train_step, annotated_gpt.MESH, lambda: annotated_gpt.arguments(mesh), [pt.Annotated()])


def others() -> dict[str, Callable[[], Made]]:
    """The sampler, and the program that one reads first."""
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((512, 256), (256, 1024), (1024, 256))]
    tiles = [pt.Tile({"x": 0}, "data"), pt.Tile({"w1": 1}, "model")]
    return {
        **ways("sampler", sampler.ddpm, BOTH, lambda: (*sampler.arguments(), jax.random.key(2)), sampler.WAYS),
        **ways("mlp", mlp.mlp, BOTH, lambda: shapes, {"batch and units": tiles}),
    }


def in_notation() -> dict[str, Callable[[], Made]]:
    """The programs in index notation: as they are annotated, and each of their plans."""
    found = dict[str, Callable[[], Made]]()
    for file in sorted(Path(mlp.__file__).parent.glob("*.partita")):
        program = pt.load(file)
        args = list(program.arguments().values())
        for name in (None, *program.plans):
            found[f"{file.name}, {name or 'annotated'}"] = lambda program=program, name=name, args=args: (
                program.plan(name),
                args,
            )
    return found


@cache
def examples() -> dict[str, Callable[[], Made]]:
    """Each example, by its name and way."""
    return {**transformers(), "annotated demo": annotated, **networks(), **loops(), **others(), **in_notation()}
