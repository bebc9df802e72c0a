"""A graph network (arXiv 1806.01261): edges over devices, and one sum over them per message-passing step.

python -m examples.graph_network
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import partita as pt

Tree = Any


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of a graph and of the network."""

    nodes: int = 48
    edges: int = 256
    features: int = 8
    width: int = 32
    steps: int = 3


def perceptron(x: jax.Array, p: Tree) -> jax.Array:
    return jax.nn.relu(x @ p["w1"] + p["b1"][None]) @ p["w2"]


def step(nodes: jax.Array, p: Tree, graph: Tree) -> jax.Array:
    """Each edge computes a message from its two nodes; each node adds the messages that arrive, and updates its state."""
    ends = (nodes[graph["senders"]], nodes[graph["receivers"]], graph["edges"])
    messages = perceptron(jnp.concatenate(ends, axis=-1), p["edge"])
    received = jax.ops.segment_sum(messages, graph["receivers"], nodes.shape[0])
    return nodes + perceptron(jnp.concatenate((nodes, received), axis=-1), p["node"])


def forward(params: Tree, graph: Tree) -> jax.Array:
    """A number for each node."""
    nodes = jnp.tanh(graph["nodes"] @ params["into"])
    for p in params["steps"]:
        nodes = step(nodes, p, graph)
    return (nodes @ params["out"])[:, 0]


def loss(params: Tree, graph: Tree) -> jax.Array:
    return jnp.mean((forward(params, graph) - graph["target"]) ** 2)


def train_step(params: Tree, graph: Tree) -> tuple[Tree, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, graph)
    return jax.tree.map(lambda p, g: p - 1e-4 * g, params, grads), value


def train_step_on_many(params: Tree, graphs: Tree) -> tuple[Tree, jax.Array]:
    """The same on a batch of graphs of one size: the leading dim of every leaf of `graphs` is the graphs."""

    def mean(params: Tree) -> jax.Array:
        return jnp.mean(jax.vmap(loss, (None, 0))(params, graphs))

    value, grads = jax.value_and_grad(mean)(params)
    return jax.tree.map(lambda p, g: p - 1e-4 * g, params, grads), value


def parameters(config: Config) -> Tree:
    c, keys = config, iter(jax.random.split(jax.random.key(0), 4 * config.steps + 2))

    def normal(rows: int, columns: int) -> jax.Array:
        return jax.random.normal(next(keys), (rows, columns)) * rows**-0.5

    def layers(rows: int) -> Tree:
        return {"w1": normal(rows, c.width), "b1": jnp.zeros(c.width), "w2": normal(c.width, c.width)}

    steps = [{"edge": layers(2 * c.width + c.features), "node": layers(2 * c.width)} for _ in range(c.steps)]
    return {"into": normal(c.features, c.width), "steps": steps, "out": normal(c.width, 1)}


def random_graph(config: Config, seed: int = 1) -> Tree:
    c, keys = config, jax.random.split(jax.random.key(seed), 5)
    return {
        "nodes": jax.random.normal(keys[0], (c.nodes, c.features)),
        "edges": jax.random.normal(keys[1], (c.edges, c.features)),
        "senders": jax.random.randint(keys[2], (c.edges,), 0, c.nodes),
        "receivers": jax.random.randint(keys[3], (c.edges,), 0, c.nodes),
        "target": jax.random.normal(keys[4], (c.nodes,)),
    }


EDGES = pt.DataParallel("data", inputs=["graph/edges", "graph/senders", "graph/receivers"])


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    config = Config()
    params, graph = parameters(config), random_graph(config)
    print(pt.plan(forward, pt.Mesh(data=8), params, graph).apply(EDGES).counts())
    plan = pt.plan(train_step, pt.Mesh(data=8), params, graph).apply(EDGES)
    print(plan.counts())

    train, alone = plan.compile(), jax.jit(train_step)
    expected = params
    for _ in range(3):
        params, value = train(params, graph)
        expected, wanted = alone(expected, graph)
        print(f"loss {float(value):.6f}, unpartitioned {float(wanted):.6f}")


if __name__ == "__main__":
    main()
