"""The demo's training step parallelised by hand, as an expert writes it with `jax.shard_map` for the same strategy.

Data parallel over `data`, and if the schedule has them, Megatron over `model` and ZeRO-3 over `data`. With ZeRO each
parameter is gathered where it is used, again in the backward pass (a rematerialisation policy saves everything but the
gathered parameters), and each gradient is summed once, by a reduce_scatter. It is the yardstick of `step_time` and
`step_times`: the same layouts and gathers, no tool in between.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from partita.examples import gpt

from .megatron import enter, leave

Tree = Any

BLOCK = {
    "ln1": {"scale": P(), "bias": P()},
    "wqkv": P("data", None, "model", None),
    "wo": P("model", "data", None),
    "ln2": {"scale": P(), "bias": P()},
    "w1": P("data", "model"),
    "w2": P("model", "data"),
    "b2": P(),
}
BATCH = {"x": P("data", None), "y": P("data", None)}


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which tactics follow data parallelism."""

    megatron: bool = True
    zero: bool = True

    def place(self, tree: Tree) -> Tree:
        """The specs with only the axes that the schedule uses for parameters."""
        used = {"model": self.megatron, "data": self.zero}
        return jax.tree.map(lambda spec: P(*(axis if used.get(axis) else None for axis in spec)), tree, is_leaf=_is_spec)


FULL = Schedule()


def specs(config: gpt.Config, schedule: Schedule = FULL) -> Tree:
    """The sharding of every parameter: Megatron's dim over `model`; in matrices the first other dim over `data`."""
    return schedule.place({"embed": P("data", None), "position": P("data", None), "blocks": [BLOCK] * config.layers})


def everywhere(config: gpt.Config, state: Tree, schedule: Schedule = FULL) -> tuple[Tree, Tree, Tree]:
    """The sharding of the arguments. Moments lie like the parameters, counters are replicated."""
    tree = specs(config, schedule)
    shape = jax.tree.structure(tree, is_leaf=_is_spec)

    def mirrors(node: Tree) -> bool:
        return jax.tree.structure(node) == shape

    return tree, jax.tree.map(lambda node: tree if mirrors(node) else P(), state, is_leaf=mirrors), BATCH


def train_step(config: gpt.Config, mesh: Mesh, state: Tree, schedule: Schedule = FULL) -> Any:
    """`gpt.train_step` for this mesh, as a function of global arrays; `state` gives the optimizer's structure."""
    where = everywhere(config, state, schedule)
    local = jax.shard_map(
        partial(_local_step, schedule, where[0], mesh.shape["data"]),
        mesh=mesh,
        in_specs=where,
        out_specs=(*where[:2], P()),
        check_vma=False,
    )
    return jax.jit(local, in_shardings=shardings(config, mesh, state, schedule))


def shardings(config: gpt.Config, mesh: Mesh, state: Tree, schedule: Schedule = FULL) -> Tree:
    """The `NamedSharding`s of the arguments."""
    return jax.tree.map(partial(NamedSharding, mesh), everywhere(config, state, schedule), is_leaf=_is_spec)


def _local_step(
    schedule: Schedule, tree: Tree, replicas: int, params: Tree, opt: Tree, batch: Tree
) -> tuple[Tree, Tree, jax.Array]:
    wholes = jax.tree.map(partial(_proxy, replicas), params, tree)
    value, grads = jax.value_and_grad(_loss, argnums=1)(params, wholes, tree, schedule, replicas, batch)
    grads = jax.tree.map(_scatter, grads, tree)
    updates, opt = gpt.OPTIMIZER.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, jax.lax.psum(value, "data")


def _loss(params: Tree, wholes: Tree, tree: Tree, schedule: Schedule, replicas: int, batch: Tree) -> Any:
    """This device's share of the loss."""
    keep = partial(jax.checkpoint, policy=_is_saved) if schedule.zero else lambda function: function

    def weight(name: str) -> Any:
        return _gather(params[name], wholes[name], _dim(tree[name]))

    def logits(x: jax.Array, shard: jax.Array, whole: jax.Array) -> jax.Array:
        return x @ _gather(shard, whole, _dim(tree["embed"])).T

    def block(x: jax.Array, shards: Tree, wholes: Tree) -> jax.Array:
        p = jax.tree.map(lambda shard, whole, spec: _gather(shard, whole, _dim(spec)), shards, wholes, tree["blocks"][0])
        return (_block if schedule.megatron else gpt.block)(x, p)

    x = weight("embed")[batch["x"]] + weight("position")[None]
    for shards, proxies in zip(params["blocks"], wholes["blocks"], strict=True):
        x = keep(block)(x, shards, proxies)
    scores = keep(logits)(x, params["embed"], wholes["embed"])
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores, batch["y"])) / replicas


def _block(x: jax.Array, p: Tree) -> jax.Array:
    """`gpt.block` on some of the heads and hidden units."""
    q, k, v = jnp.einsum("btm,mchd->cbthd", enter(gpt.layer_norm(x, p["ln1"])), p["wqkv"])
    x = x + leave(jnp.einsum("bthd,hdm->btm", gpt.attention(q, k, v), p["wo"]))
    hidden = jax.nn.gelu(enter(gpt.layer_norm(x, p["ln2"])) @ p["w1"])
    return x + leave(hidden @ p["w2"]) + p["b2"][None, None]


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _gather(shard: jax.Array, whole: jax.Array, dim: int | None) -> jax.Array:
    """The gathered parameter. Its unsummed gradient goes to `whole`, so that all its uses share one sum."""
    return shard if dim is None else jax.lax.all_gather(shard, "data", axis=dim, tiled=True)


_gather.defvjp(
    lambda shard, whole, dim: (_gather(shard, whole, dim), shard),
    lambda dim, shard, gradient: (jnp.zeros_like(shard), gradient),
)


def _is_saved(primitive: Any, *_: Any, **params: Any) -> bool:
    """The rematerialisation policy: save all but what `_gather` returns, also when seen through ops that move it."""
    body = params.get("call_jaxpr")
    gathers = body is not None and any(eqn.primitive.name == "all_gather" for eqn in body.eqns)
    return not gathers and primitive.name not in ("broadcast_in_dim", "reshape", "transpose")


def _proxy(replicas: int, shard: jax.Array, spec: P) -> jax.Array:
    shape = list(shard.shape)
    dim = _dim(spec)
    if dim is not None:
        shape[dim] *= replicas
    return jnp.zeros(shape, shard.dtype)


def _scatter(gradient: jax.Array, spec: P) -> jax.Array:
    dim = _dim(spec)
    if dim is None:
        return jax.lax.psum(gradient, "data")
    return jax.lax.psum_scatter(gradient, "data", scatter_dimension=dim, tiled=True)


def _dim(spec: P) -> int | None:
    """The dim over `data`; None for what is replicated over it."""
    return tuple(spec).index("data") if "data" in tuple(spec) else None


def _is_spec(node: Any) -> bool:
    return isinstance(node, P)
