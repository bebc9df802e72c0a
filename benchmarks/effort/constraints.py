"""The transformer, partitioned by `jax.jit`: shardings of the arguments, and constraints on the activations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

Tree = Any
LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY, LENGTH, BATCH = 2, 64, 4, 256, 128, 32, 16
ADAM = optax.adam(1e-3)
SPECS = {
    **dict.fromkeys(("wq", "wk", "wv"), P("data", "model")),
    "wo": P("model", None, "data"),
    "w1": P("data", "model"),
    "w2": P("model", "data"),
    "embed": P(None, "data"),
}


def init() -> Tree:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(0, WIDTH**-0.5, shape), jnp.float32)

    def layer() -> Tree:
        heads = {name: normal(WIDTH, HEADS, WIDTH // HEADS) for name in ("wq", "wk", "wv")}
        norms = {"norm1": jnp.ones(WIDTH), "norm2": jnp.ones(WIDTH)}
        return {
            **heads,
            **norms,
            "wo": normal(HEADS, WIDTH // HEADS, WIDTH),
            "w1": normal(WIDTH, HIDDEN),
            "w2": normal(HIDDEN, WIDTH),
        }

    return {"embed": normal(VOCABULARY, WIDTH), "layers": [layer() for _ in range(LAYERS)]}


def constrain(x: jax.Array, *spec: str | None) -> jax.Array:
    return jax.lax.with_sharding_constraint(x, P(*spec))


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale


def attention(x: jax.Array, p: Tree) -> jax.Array:
    q = jnp.einsum("btm,mhd->bthd", x, p["wq"])
    k = jnp.einsum("btm,mhd->bthd", x, p["wk"])
    v = jnp.einsum("btm,mhd->bthd", x, p["wv"])
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal, scores, -1e9)), v)
    return jnp.einsum("bthd,hdm->btm", mixed, p["wo"])


def mlp(x: jax.Array, p: Tree) -> jax.Array:
    return jax.nn.gelu(x @ p["w1"]) @ p["w2"]


def layer(x: jax.Array, p: Tree) -> jax.Array:
    x = constrain(x + attention(norm(x, p["norm1"]), p), "data")
    return constrain(x + mlp(norm(x, p["norm2"]), p), "data")


def head(x: jax.Array, embed: jax.Array) -> jax.Array:
    return x @ embed.T


def loss(params: Tree, batch: Tree) -> jax.Array:
    x = constrain(params["embed"][batch["x"]], "data")
    for p in params["layers"]:
        x = layer(x, p)
    logits = head(x, params["embed"])
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]))


def train_step(params: Tree, opt: Tree, batch: Tree) -> tuple[Tree, Tree, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, batch)
    updates, opt = ADAM.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, value


def shardings(mesh: Mesh, tree: Tree) -> Tree:
    """Parameters and moments are sharded by their names, everything else is replicated."""

    def sharding(path: Any, leaf: Any) -> NamedSharding:
        return NamedSharding(mesh, SPECS.get(getattr(path[-1], "key", ""), P()) if path else P())

    return jax.tree_util.tree_map_with_path(sharding, tree)


def arguments() -> tuple[Tree, Tree, Tree]:
    params = init()
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)
    return params, ADAM.init(params), {"x": tokens[:, :-1], "y": tokens[:, 1:]}


def program() -> tuple[Any, tuple[Tree, Tree, Tree]]:
    """The step and its arguments."""
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    jax.set_mesh(mesh)
    params, opt, batch = arguments()
    places = shardings(mesh, params), shardings(mesh, opt)
    step = jax.jit(train_step, out_shardings=(*places, NamedSharding(mesh, P())))
    return step, jax.device_put((params, opt, batch), (*places, NamedSharding(mesh, P("data"))))
