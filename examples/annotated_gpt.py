"""A GPT that was sharded for `jax.jit`, as a plan: its own constraints and the shardings of its arguments are the tactic.

    python -m examples.annotated_gpt

Nothing in the model knows Partita. The batch is over `data`; heads and hidden units are over `model`; weights and the
optimizer's state are stored over both, as in fully sharded data parallelism. `pt.Annotated()` makes claims of that.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

import partita as pt

from . import gpt, text

CONFIG = gpt.Config()
BATCH = 32
MESH = pt.Mesh(data=4, model=2)

Tree = Any


def shard(x: jax.Array, *spec: str | None) -> jax.Array:
    return jax.lax.with_sharding_constraint(x, P(*spec))


def block(x: jax.Array, p: Tree) -> jax.Array:
    q, k, v = jnp.einsum("btm,mchd->cbthd", gpt.layer_norm(x, p["ln1"]), p["wqkv"])
    heads = gpt.attention(*(shard(each, "data", None, "model", None) for each in (q, k, v)))
    x = shard(x + jnp.einsum("bthd,hdm->btm", heads, p["wo"]), "data", None, None)
    hidden = shard(jax.nn.gelu(gpt.layer_norm(x, p["ln2"]) @ p["w1"]), "data", None, "model")
    return shard(x + hidden @ p["w2"] + p["b2"][None, None], "data", None, None)


def loss(params: Tree, batch: Tree) -> jax.Array:
    x = shard(params["embed"][batch["x"]] + params["position"][None], "data", None, None)
    for p in params["blocks"]:
        x = block(x, p)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(x @ params["embed"].T, batch["y"]))


def train_step(params: Tree, opt: Tree, batch: Tree) -> tuple[Tree, Tree, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, batch)
    updates, opt = gpt.OPTIMIZER.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, value


def spec(path: Any, leaf: jax.Array) -> P:
    """Where a parameter, or its part of the optimizer's state, is stored: vectors are whole."""
    sides = {"wqkv": P("data", None, "model"), "wo": P("model", None, "data"), "w1": P("data", "model")}
    sides |= {"w2": P("model", "data"), "embed": P("data"), "position": P("data")}
    return sides.get(str(getattr(path[-1], "key", "")), P()) if leaf.ndim > 1 else P()


def device_mesh() -> Mesh:
    """The devices, in the plan's mesh."""
    return jax.make_mesh(tuple(MESH.axes.values()), tuple(MESH.axes), axis_types=(AxisType.Auto,) * len(MESH.axes))


def arguments(mesh: Mesh) -> tuple[Tree, Tree, Tree]:
    """Parameters, the optimizer's state and a batch, as `jax.jit` expects them."""
    params = gpt.init(CONFIG)
    batch: Any = next(text.batches(text.corpus(200_000), BATCH, CONFIG.length))
    stored = (params, gpt.OPTIMIZER.init(params))
    places = jax.tree_util.tree_map_with_path(lambda path, leaf: NamedSharding(mesh, spec(path, leaf)), stored)
    return *jax.device_put(stored, places), jax.device_put(batch, NamedSharding(mesh, P("data")))


def main() -> None:
    jax.config.update("jax_num_cpu_devices", MESH.size)
    mesh = device_mesh()
    with jax.set_mesh(mesh):
        args = arguments(mesh)
        plan = pt.plan(train_step, MESH, *args)
        print(plan)
        annotated = plan.apply(pt.Annotated())
        print(annotated.counts())
        print(sum(each.is_applied for each in annotated.annotations), "of", len(annotated.annotations), "annotations applied")
        (_, _, ours), (_, _, theirs) = annotated.compile()(*args), jax.jit(train_step)(*args)
        print(f"loss {float(np.asarray(ours)):.6f}, jax.jit {float(np.asarray(theirs)):.6f}")


if __name__ == "__main__":
    main()
