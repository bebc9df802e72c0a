"""Plans of the examples whose files are fixtures: `tests/compiler/api/saved` has what an earlier version saved of them.

    python tests/support/saved_plans.py FOLDER      writes a plan file of each, and what it does, with the version on the path

Only what the public face has is used here, so that earlier versions can write what later ones replay.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh as DeviceMesh

import partita as pt
from partita.examples import (
    annotated_gpt,
    decode,
    demo,
    equinox_mixer,
    gpt,
    graph_network,
    heat,
    llama,
    lstm,
    mlp,
    moe,
    resnet,
    scan_layers,
    vocabulary,
)

Step = Callable[..., Any]
DATA8, BOTH = pt.Mesh(data=8), pt.Mesh(data=4, model=2)
BATCH, MEGATRON = demo.TACTICS["data parallel"], demo.TACTICS["Megatron"]
MATRICES = ["params/embed", "params/position", "params/**/w*"]
MOMENTS = ["opt/**/embed", "opt/**/position", "opt/**/w*"]
NOTATION = Path(mlp.__file__).parent


@dataclass(frozen=True, slots=True)
class Saved:
    """A program on a mesh, and the tactics whose plan is saved."""

    function: Step
    mesh: pt.Mesh
    args: Sequence[Any]
    tactics: Sequence[Any]
    context: Callable[[], AbstractContextManager[Any]] = nullcontext

    def plan(self) -> pt.Plan:
        with self.context():
            return pt.plan(self.function, self.mesh, *self.args).apply(*self.tactics)

    def replayed(self, file: Path) -> pt.Plan:
        with self.context():
            return pt.replay(self.function, file, *self.args)


def shapes(make: Callable[[], Any]) -> Any:
    return jax.eval_shape(make)


@cache
def transformer() -> Any:
    config = gpt.Config(length=32, layers=2, width=64)
    params = shapes(lambda: gpt.init(config))
    tokens = jax.ShapeDtypeStruct((16, config.length), "int32")
    return params, shapes(lambda: gpt.OPTIMIZER.init(params)), {"x": tokens, "y": tokens}


def of_transformer(*tactics: Any, mesh: pt.Mesh = BOTH) -> Saved:
    return Saved(gpt.train_step, mesh, transformer(), tactics)


def of_llama(*tactics: Any) -> Saved:
    return Saved(llama.train_step, llama.MESH, shapes(lambda: llama.arguments(llama.Config(vocabulary=504))), tactics)


def zero(stage: int) -> pt.Tactic:
    return pt.ZeRO(stage, "data", params=MATRICES, optimizer=MOMENTS)


def annotated() -> Saved:
    axes = annotated_gpt.MESH.axes
    devices = np.array(jax.devices()[: annotated_gpt.MESH.size]).reshape(tuple(axes.values()))
    mesh = DeviceMesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    args = annotated_gpt.arguments(mesh)
    return Saved(annotated_gpt.train_step, annotated_gpt.MESH, args, [pt.Annotated()], lambda: jax.set_mesh(mesh))


def mixer() -> Saved:
    step, args = equinox_mixer.create(blocks=1)
    return Saved(step, BOTH, args, equinox_mixer.WAYS["hidden"])


def in_notation(name: str, way: str) -> Saved:
    program = pt.load(NOTATION / f"{name}.partita")
    args = list(program.arguments().values())
    plan = program.plan(way)

    def as_annotated(start: pt.Plan) -> pt.Plan:
        del start
        return plan

    return Saved(program.functions[name], plan.mesh, args, [as_annotated])


def logits(params: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    """The loss of the vocabulary's example, its logits with a name."""
    scores = pt.tag(vocabulary.logits(params, tokens[:, :-1]), "logits")
    found = jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(scores, axis=-1) - found)


def in_scopes(params: Any, tokens: jax.Array) -> Any:
    """The gradient of the transformer's loss, each block in a scope."""

    def loss(params: Any) -> jax.Array:
        x = params["embed"][tokens] + params["position"][None]
        for number, p in enumerate(params["blocks"]):
            with jax.named_scope(f"block{number}"):
                x = gpt.block(x, p)
        return jnp.mean(jnp.square(x @ params["embed"].T))

    return jax.grad(loss)(params)


def gram(x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ x.T) @ x


def heat_saved(*tactics: Any) -> Saved:
    return Saved(heat.heat, DATA8, [heat.argument()], tactics)


def chain(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    return (x @ w1) @ w2


def rewritten(rule: str, at: str = "**") -> Callable[[pt.Plan], pt.Plan]:
    return lambda plan: plan.rewrite(rule, at)


SAVED: dict[str, Callable[[], Saved]] = {
    "megatron": lambda: of_transformer(BATCH, MEGATRON),
    "zero1": lambda: of_transformer(BATCH, zero(1)),
    "zero2": lambda: of_transformer(BATCH, MEGATRON, zero(2)),
    "zero3": lambda: of_transformer(BATCH, MEGATRON, zero(3)),
    "sequence": lambda: of_transformer(BATCH, MEGATRON, pt.SequenceParallel("model")),
    "context": lambda: of_transformer(pt.ContextParallel("context"), BATCH, mesh=pt.Mesh(data=2, context=4)),
    "tensor2d": lambda: of_transformer(pt.Tensor2D("data", "model")),
    "slow_pods": lambda: of_transformer(
        pt.DataParallel(("pod", "data"), inputs="batch/*"), zero(3), mesh=pt.Mesh(pod=2, data=4, slow="pod")
    ),
    "inner_values": lambda: of_transformer(
        BATCH, pt.Tile({"dot_general#4": 2}, "model"), pt.Replicate("dot_general#20", "model")
    ),
    "fsdp": lambda: of_llama(pt.DataParallel("data", inputs="batch"), llama.TACTICS[1], pt.FSDP("data", smallest=1)),
    "each_trip": lambda: of_llama(*llama.TACTICS, pt.EachTrip("params")),
    "experts": lambda: Saved(moe.train_step, DATA8, shapes(lambda: moe.arguments(moe.Config())), moe.TACTICS),
    "graph": lambda: Saved(
        graph_network.train_step,
        DATA8,
        shapes(lambda: (graph_network.parameters(graph_network.Config()), graph_network.random_graph(graph_network.Config()))),
        [graph_network.EDGES],
    ),
    "images_in_space": lambda: Saved(
        resnet.train_step,
        pt.Mesh(data=4, model=2),
        shapes(lambda: (resnet.create_state(), resnet.random_batch())),
        [pt.Tile({"batch/image": 1}, "data"), resnet.channels],
    ),
    "mixer": mixer,
    "stencil": lambda: heat_saved(*heat.WAYS["exchanged"]),
    "stencil_widened": lambda: heat_saved(*heat.WAYS["widened"]),
    "padded": lambda: Saved(
        lstm.train_step,
        lstm.MESH,
        shapes(lambda: lstm.arguments(lstm.Config(batch=30, hidden=63))),
        [pt.DataParallel("data", inputs="batch", padded=True), pt.Tile({"params/wx": 2, "params/wh": 2}, "model", padded=True)],
    ),
    "vocabulary": lambda: Saved(
        vocabulary.train_step,
        pt.Mesh(data=2, model=4),
        shapes(lambda: vocabulary.arguments(vocabulary.Config())),
        [vocabulary.DATA, vocabulary.VOCABULARY],
    ),
    "chunked": lambda: Saved(
        logits,
        pt.Mesh(data=2, model=4),
        shapes(lambda: vocabulary.arguments(vocabulary.Config())),
        [vocabulary.DATA, pt.Tile({"logits": 0}, "part_logits_0:4")],
    ),
    "recomputed": lambda: Saved(
        in_scopes, BOTH, (transformer()[0], transformer()[2]["x"]), [MEGATRON, rewritten("recompute", at="block*")]
    ),
    "values_in_scopes": lambda: Saved(
        in_scopes,
        BOTH,
        (transformer()[0], transformer()[2]["x"]),
        [
            pt.Tile({"jvp(block0)/dot_general#0": 2, "jvp(block1)#18": 1}, "model"),
            pt.Tile({"transpose(jvp(block1))/dot_general#1": 0}, "data"),
            pt.Replicate("transpose(jvp(block0))/add_any#0", "model"),
        ],
    ),
    "reassociated": lambda: Saved(
        chain,
        BOTH,
        [jax.ShapeDtypeStruct(shape, "float32") for shape in ((256, 8), (8, 16), (16, 8))],
        [pt.Tile({"x": 0}, "data"), rewritten("reassociate"), pt.Tile({"w1": 1}, "model")],
    ),
    "conflict_resolved": lambda: Saved(
        gram, BOTH, [jax.ShapeDtypeStruct((64, 16), "float32")], [pt.Tile({"x": 0}, "data"), pt.Resolve()]
    ),
    "annotated": annotated,
    "sub_axes": lambda: Saved(
        scan_layers.train_step,
        DATA8,
        shapes(scan_layers.arguments),
        [
            pt.DataParallel("data.0:2", inputs="x"),
            pt.Tile({"params/w1": 2}, "data.1:4"),
            pt.ZeRO(3, "data.0:2", params="params"),
        ],
    ),
    "in_turn": lambda: Saved(
        mlp.mlp,
        BOTH,
        [jax.ShapeDtypeStruct(shape, "float32") for shape in ((512, 256), (256, 1024), (1024, 256))],
        [pt.Tile({"x": 0}, "data", block=16), pt.Tile({"w1": 1}, "model")],
    ),
    "decoding": lambda: Saved(
        decode.decode,
        decode.MESH,
        shapes(lambda: decode.arguments(decode.Config(kv=1))),
        decode.WAYS["multi-query, the cache by its batch"][1],
    ),
    "block_in_notation": lambda: in_notation("block", "zero3"),
    "attention_in_notation": lambda: in_notation("attention", "heads"),
}


def does(plan: pt.Plan) -> dict[str, Any]:
    """What a plan does: the layouts of arguments and results, how many computed values have which layout, and bytes."""
    computed = Counter(plan.layout_text(value) for value in plan.source.addresses.by_op.values())
    return {
        "layouts": dict(plan.layout("**")),
        "computed": {layout: count for layout, count in sorted(computed.items()) if "*" in layout},
        "bytes": plan.bytes_per_device(),
        "counts": dict(plan.counts()),
    }


def main() -> None:
    folder = Path(sys.argv[1])
    for name, make in SAVED.items():
        plan = make().plan()
        plan.save(folder / f"{name}.partita")
        (folder / f"{name}.json").write_text(json.dumps(does(plan), indent=1) + "\n")
        print(name, plan.bytes_per_device(), dict(plan.counts()), len(plan.conflicts))


if __name__ == "__main__":
    main()
