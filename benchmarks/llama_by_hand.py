"""The training step of `examples/llama.py` by hand, as an expert writes it with `jax.shard_map` for the same strategy.

Data parallel over `data`, Megatron over `model`, ZeRO-3 over `data`. A trip over the layers gathers its layer, forward and
again in the recomputation, whose gathers the gradient shares. The embedding and the last norm, which all micro-batches share,
are gathered once. All gradients are added over the micro-batches, and scattered once.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from partita.examples import llama

from .megatron import enter, leave

Tree = Any

LAYERS = {
    "norm1": P(None, "data"),
    "wq": P(None, "data", "model"),
    "wk": P(None, "data", "model"),
    "wv": P(None, "data", "model"),
    "wo": P(None, "model", "data"),
    "norm2": P(None, "data"),
    "gate": P(None, "data", "model"),
    "up": P(None, "data", "model"),
    "down": P(None, "model", "data"),
}
PARAMS = {"embed": P(None, "data"), "layers": LAYERS, "norm": P("data")}


def train_step(mesh: Mesh, opt: Tree, parts: int = llama.PARTS) -> Any:
    """`llama.train_step` for this mesh, as a function of global arrays; `opt` gives the optimizer's structure."""
    where = specs(opt)
    local = jax.shard_map(
        partial(_local_step, mesh.shape, parts), mesh=mesh, in_specs=where, out_specs=(*where[:2], P()), check_vma=False
    )
    placed = jax.tree.map(partial(NamedSharding, mesh), where, is_leaf=_is_spec)
    return jax.jit(local, in_shardings=placed)


def specs(opt: Tree) -> Tree:
    """The sharding of parameters, optimizer state and batch: moments lie like their parameters."""
    shape = jax.tree.structure(PARAMS, is_leaf=_is_spec)

    def mirrors(node: Tree) -> bool:
        return jax.tree.structure(node) == shape

    return PARAMS, jax.tree.map(lambda node: PARAMS if mirrors(node) else P(), opt, is_leaf=mirrors), P("data")


def _local_step(sizes: Any, parts: int, params: Tree, opt: Tree, batch: jax.Array) -> tuple[Tree, Tree, jax.Array]:
    ends = {
        name: jax.lax.all_gather(params[name], "data", axis=params[name].ndim - 1, tiled=True) for name in ("embed", "norm")
    }

    def whole(name: str, shard: jax.Array) -> jax.Array:
        dim = LAYERS[name].index("data")
        return jnp.zeros((*shard.shape[:dim], shard.shape[dim] * sizes["data"], *shard.shape[dim + 1 :]), shard.dtype)

    zeros = {
        **jax.tree.map(jnp.zeros_like, ends),
        "layers": {name: whole(name, each) for name, each in params["layers"].items()},
    }

    def loss(shared: Tree, part: jax.Array) -> jax.Array:
        return _loss(shared, params["layers"], part)

    def add(total: Tree, part: jax.Array) -> tuple[Tree, None]:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)({**zeros, **ends}, part)), None

    total, _ = jax.lax.scan(add, (jnp.zeros(()), zeros), batch.reshape(-1, parts, batch.shape[1]).swapaxes(0, 1))
    value, grads = total
    grads = jax.tree.map(_scattered, grads, PARAMS, is_leaf=_is_spec)
    value, grads = jax.tree.map(lambda each: each / (parts * sizes["data"]), (value, grads))
    updates, adamw = llama.ADAMW.update(_clipped(grads, sizes["model"]), opt[1], params)
    return optax.apply_updates(params, updates), (opt[0], adamw), jax.lax.psum(value, "data")


def _clipped(grads: Tree, copies: int) -> Tree:
    """The gradients, scaled to a norm of at most `NORM`: one sum over all devices, in which copies count once."""
    squares = jax.tree.map(
        lambda grad, spec: jnp.sum(grad**2) / (1 if "model" in spec else copies), grads, PARAMS, is_leaf=_is_spec
    )
    norm = jnp.sqrt(jax.lax.psum(sum(jax.tree.leaves(squares)), ("data", "model")))
    scale = jnp.where(norm < llama.NORM, 1.0, llama.NORM / norm)
    return jax.tree.map(lambda grad: grad * scale, grads)


def _scattered(grad: jax.Array, spec: P) -> jax.Array:
    return jax.lax.psum_scatter(grad, "data", scatter_dimension=spec.index("data"), tiled=True)


def _loss(params: Tree, shards: Tree, tokens: jax.Array) -> jax.Array:
    """The mean over this device's rows. What `params` has of the layers stands for them whole: only its gradient is used."""
    x = params["embed"][tokens[:, :-1]]
    x, _ = jax.lax.scan(lambda x, p: (jax.checkpoint(_layer)(x, *p), None), x, (shards, params["layers"]))
    logits = llama.rms_norm(x, params["norm"]) @ params["embed"].T
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))


def _layer(x: jax.Array, shards: Tree, whole: Tree) -> jax.Array:
    p = {name: _gather(shard, whole[name], LAYERS[name].index("data") - 1) for name, shard in shards.items()}
    h = enter(llama.rms_norm(x, p["norm1"]))
    q = llama.rope(jnp.einsum("btm,mkgd->btkgd", h, p["wq"]))
    k = llama.rope(jnp.einsum("btm,mkd->btkd", h, p["wk"]))
    v = jnp.einsum("btm,mkd->btkd", h, p["wv"])
    x = x + leave(jnp.einsum("btkgd,kgdm->btm", llama.attention(q, k, v), p["wo"]))
    h = enter(llama.rms_norm(x, p["norm2"]))
    return x + leave((jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"])


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _gather(shard: jax.Array, whole: jax.Array, dim: int) -> jax.Array:
    """The gathered parameter. Its gradient is that of `whole`: the device's own term of the sum."""
    return jax.lax.all_gather(shard, "data", axis=dim, tiled=True)


_gather.defvjp(
    lambda shard, whole, dim: (_gather(shard, whole, dim), shard),
    lambda dim, shard, gradient: (jnp.zeros_like(shard), gradient),
)


def _is_spec(node: Any) -> bool:
    return isinstance(node, P)
