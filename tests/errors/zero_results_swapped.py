"""ZeRO-2 of a step that returns several trees like the parameters, in another order."""

# What users write has no types.
# pyright: basic

import jax
import numpy as np

import partita as pt


def step(params, m, v, x):
    grads = jax.grad(lambda params: (x @ params["w"]).sum())(params)
    m = jax.tree.map(lambda m, g: 0.9 * m + g, m, grads)
    return v, m, jax.tree.map(lambda p, m: p - m, params, m)


TREE = {"w": np.ones((8, 16), np.float32)}
plan = pt.plan(step, pt.Mesh(data=4), TREE, TREE, TREE, np.ones((256, 8), np.float32))
print(plan.successors)
plan.apply(pt.ZeRO(2, "data", params="params", optimizer=["m", "v"]))
