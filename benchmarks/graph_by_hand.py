"""The training step of `examples/graph_network.py` on one device's edges: one sum of messages in each step and direction."""

from typing import Any

import jax
import jax.numpy as jnp

from partita.examples import graph_network as network

from .megatron import enter, leave

Tree = Any


def train_step(params: Tree, graph: Tree) -> tuple[Tree, jax.Array]:
    value, grads = jax.value_and_grad(_loss)(params, graph)
    # Nodes are on every device, and so are the gradients of what works on them.
    steps = [{"edge": jax.lax.psum(p["edge"], "data"), "node": p["node"]} for p in grads["steps"]]
    grads = {**grads, "steps": steps}
    return jax.tree.map(lambda p, g: p - 1e-4 * g, params, grads), value


def _loss(params: Tree, graph: Tree) -> jax.Array:
    nodes = jnp.tanh(graph["nodes"] @ params["into"])
    for p in params["steps"]:
        here = enter(nodes, "data")
        ends = (here[graph["senders"]], here[graph["receivers"]], graph["edges"])
        messages = network.perceptron(jnp.concatenate(ends, axis=-1), p["edge"])
        received = leave(jax.ops.segment_sum(messages, graph["receivers"], nodes.shape[0]), "data")
        nodes = nodes + network.perceptron(jnp.concatenate((nodes, received), axis=-1), p["node"])
    return jnp.mean(((nodes @ params["out"])[:, 0] - graph["target"]) ** 2)
