"""The examples, each as it is and with a layer more, small enough to be traced often: a step, a mesh, tactics, arguments.

A layer more is what a user writes: a number of the model's config, or a few lines of its code.
"""

# JAX and Flax annotate their functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import flax.linen as nn
import jax
from example_plans import BOTH, DATA8, annotated_mesh

import partita as pt
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
    unet,
    vocabulary,
)

Tree = Any
Step = Callable[..., Any]
Model = tuple[Step, Sequence[Any]]
"""A function, and its arguments or their shapes."""


@dataclass(frozen=True)
class Example:
    """`model(more)` is the model with so many layers more."""

    model: Callable[[int], Model]
    tactics: Sequence[Any]
    mesh: pt.Mesh = BOTH


def shapes(make: Callable[..., Any], *args: Any) -> Any:
    """What it makes, as shapes: no initial parameters are computed."""
    return jax.eval_shape(partial(make, *args))


def character_model(more: int) -> Model:
    config = gpt.Config(vocabulary=32, length=16, layers=2 + more, width=32)
    tokens = jax.ShapeDtypeStruct((16, 16), "int32")
    params = shapes(gpt.init, config)
    return gpt.train_step, (params, shapes(gpt.OPTIMIZER.init, params), {"x": tokens, "y": tokens})


def annotated(more: int) -> Model:
    """With the shardings of its arguments, in a mesh of JAX."""
    mesh = annotated_mesh()
    with patch.object(annotated_gpt, "CONFIG", gpt.Config(vocabulary=32, length=16, layers=2 + more, width=32)):
        return annotated_gpt.train_step, annotated_gpt.arguments(mesh)


def flax_classifier(more: int) -> Model:
    return flax_transformer.train_step, shapes(
        lambda: (flax_transformer.create_state(layers=2 + more), flax_transformer.random_batch())
    )


def large_language_model(more: int) -> Model:
    config = replace(llama.Config(), vocabulary=48, batch=12, layers=2 + more)
    return llama.train_step, shapes(llama.arguments, config)


def experts(more: int) -> Model:
    """Another mixture of experts behind the first one."""

    def layers(params: Tree, x: jax.Array) -> jax.Array:
        for p in [params, *params.get("behind", ())]:
            x = moe.mixture(p, x)
        return x

    def arguments() -> tuple[Tree, Tree]:
        params, batch = moe.arguments(moe.Config(groups=8, tokens=8, width=16, hidden=32))
        behind = [{name: params[name] for name in ("gate", "experts")} for _ in range(more)]
        return ({**params, "behind": behind} if more else params), batch

    def train_step(params: Tree, batch: Tree) -> tuple[Tree, jax.Array]:
        return moe.train_step(params, batch, layers)

    return train_step, shapes(arguments)


def graph(more: int) -> Model:
    config = graph_network.Config(nodes=16, edges=64, steps=2 + more)
    return graph_network.train_step, shapes(lambda: (graph_network.parameters(config), graph_network.random_graph(config)))


class DeeperUNet(unet.UNet):
    """A convolution before the first one."""

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        return super().__call__(x + nn.Conv(3, (3, 3), name="before")(x), time)


def u_net(more: int) -> Model:
    with patch.object(unet, "UNet", DeeperUNet) if more else nullcontext():
        return unet.train_step, shapes(lambda: (unet.create_state(), unet.random_images(), jax.random.key(2)))


def sampling(more: int) -> Model:
    def ddpm(params: Tree, x: jax.Array, key: jax.Array) -> jax.Array:
        with patch.object(sampler, "UNet", DeeperUNet if more else unet.UNet):
            return sampler.ddpm(params, x, key)

    state, images, key = u_net(more)[1]
    return ddpm, (state.params, images, key)


def mixer(more: int) -> Model:
    step, args = equinox_mixer.create(2 + more)
    return step, args


def residual(more: int) -> Model:
    return resnet.train_step, shapes(lambda: (resnet.create_state(2 + more), resnet.random_batch()))


def language_model(more: int) -> Model:
    """Another mixture of the channels before the logits."""
    logits = vocabulary.logits

    def deeper(params: Tree, tokens: jax.Array) -> jax.Array:
        return logits({**params, "mix": params["mix"] @ params["before"]}, tokens)

    def train_step(params: Tree, tokens: jax.Array) -> tuple[Tree, jax.Array]:
        with patch.object(vocabulary, "logits", deeper if more else logits):
            return vocabulary.train_step(params, tokens)

    params, tokens = shapes(vocabulary.arguments, vocabulary.Config(vocabulary=64, batch=8, length=8))
    return train_step, ({**params, "before": params["mix"]} if more else params, tokens)


def recurrent(more: int) -> Model:
    """Another LSTM before the first one."""
    forward = lstm.forward

    def deeper(params: Tree, x: jax.Array) -> jax.Array:
        return forward(params, forward(params["before"], x))

    def train_step(params: Tree, batch: jax.Array) -> tuple[Tree, jax.Array]:
        with patch.object(lstm, "forward", deeper if more else forward):
            return lstm.train_step(params, batch)

    params, batch = shapes(lstm.arguments, lstm.Config(batch=8, length=4, hidden=16))
    return train_step, ({**params, "before": params} if more else params, batch)


def stacked(more: int) -> Model:
    """Weights of layers in a scan."""
    sizes = (2 + more, 64, 128), (2 + more, 128, 64), (64, 64)
    w1, w2, x = (jax.ShapeDtypeStruct(size, "float32") for size in sizes)
    return scan_layers.train_step, ({"w1": w1, "w2": w2}, x)


def plane(more: int) -> Model:
    """Its steps have no parameters: a layer is a step."""

    def diffuse(u: jax.Array) -> jax.Array:
        with patch.object(heat, "STEPS", heat.STEPS + more):
            return heat.heat(u)

    return diffuse, (jax.ShapeDtypeStruct((64, 64), "float32"),)


def decoding(more: int) -> Model:
    return decode.decode, shapes(decode.arguments, decode.Config(layers=2 + more, length=4, width=32))


def perceptron(more: int) -> Model:
    def deeper(x: jax.Array, w1: jax.Array, w2: jax.Array, w3: jax.Array) -> jax.Array:
        return jax.nn.relu(mlp.mlp(x, w1, w2)) @ w3

    sizes = [(64, 16), (16, 32), (32, 16), (16, 16)][: 3 + more]
    return deeper if more else mlp.mlp, [jax.ShapeDtypeStruct(size, "float32") for size in sizes]


Made = tuple[pt.Plan, Step, Sequence[Any]]
"""A plan, its function and its arguments."""


def made(model: Callable[[int], Model], tactics: Sequence[Any], mesh: pt.Mesh, more: int) -> Made:
    step, args = model(more)
    return pt.plan(step, mesh, *args).apply(*tactics), step, args


def in_notation(name: str, way: str, edits: Mapping[str, str], more: int) -> Made:
    """A program in index notation, with more layers if its text is edited."""
    text = (Path(mlp.__file__).parent / name).read_text()
    for old, new in edits.items() if more else ():
        assert old in text
        text = text.replace(old, new)
    program = pt.parse(text, name)
    plan = program.plan(way)
    args = program.arguments()
    return plan, list(program.functions.values())[-1], list(args.values())


MATRIX = {
    "fn mlp(x: f32[B=512 @data, D=256], w1": "fn mlp(x: f32[B=512 @data, D=256], w0: f32[D, D], w1",
    "sum(k) x[b, k] * w1": "sum(k) tanh(sum(d) x[b, d] * w0[d, k]) * w1",
}
ATTENTION = {
    "fn attention(": "fn layer(",
    "plan batch": """fn attention(
  x: f32[B, S, D], wqkv: f32[D, 3, H, K], wo: f32[H, K, D], more: f32[D, 3, H, K], out: f32[H, K, D],
) -> f32[B, S, D] {
  h = layer(x, wqkv, wo)
  y = layer(h, more, out)
  return y
}

plan batch""",
}
BLOCK = {
    "w2: f32[F, D], scale1": "w2: f32[F, D], w3: f32[D, D], scale1",
    "mid[n, s, d] + v[n, s, d]\n": "mid[n, s, d] + sum(e) v[n, s, e] * w3[e, d]\n",
}
EMBEDDING = {
    "table: f32[V=64, D=32])": "table: f32[V=64, D=32], w: f32[D, D])",
    "tanh(x[b, s, d])": "tanh(sum(e) x[b, s, e] * w[e, d])",
}
DATA = pt.DataParallel("data", inputs="x")
TACTICS_OF: dict[str, tuple[Callable[[int], Model], Sequence[Any], pt.Mesh]] = {
    "demo": (character_model, [*demo.TACTICS.values()], BOTH),
    "flax_transformer": (flax_classifier, flax_transformer.WAYS["zero"], BOTH),
    "llama": (large_language_model, llama.TACTICS, llama.MESH),
    "moe": (experts, moe.TACTICS, DATA8),
    "graph_network": (graph, [graph_network.EDGES], DATA8),
    "unet": (u_net, unet.WAYS["heads and channels"], BOTH),
    "equinox_mixer": (mixer, equinox_mixer.WAYS["hidden"], BOTH),
    "resnet": (residual, resnet.WAYS["zero"], BOTH),
    "vocabulary": (language_model, [vocabulary.DATA, vocabulary.VOCABULARY], pt.Mesh(data=2, model=4)),
    "lstm": (recurrent, [lstm.DATA, lstm.UNITS], BOTH),
    "scan_layers": (stacked, [DATA, pt.ZeRO(3, "data", params="params")], DATA8),
    "heat": (plane, heat.WAYS["widened"], DATA8),
    "decode": (decoding, [decode.MULTI_HEAD], decode.MESH),
    "sampler": (sampling, sampler.WAYS["heads and channels"], BOTH),
    "mlp": (perceptron, [pt.Tile({"x": 0}, "data"), pt.Tile({"w1": 1}, "model")], BOTH),
    "annotated_gpt": (annotated, [pt.Annotated()], annotated_gpt.MESH),
}

EXAMPLES: dict[str, Callable[[int], Made]] = {
    **{name: partial(made, *row) for name, row in TACTICS_OF.items()},
    "mlp.partita": partial(in_notation, "mlp.partita", "zero3", MATRIX),
    "attention.partita": partial(in_notation, "attention.partita", "heads", ATTENTION),
    "block.partita": partial(in_notation, "block.partita", "zero3", BLOCK),
    "embedding.partita": partial(in_notation, "embedding.partita", "vocabulary", EMBEDDING),
}
"""The plan of each example, by the name of its file and the number of layers more."""
