"""A training step in the manner of `nnx.jit`, which returns only the loss."""

# pyright: basic

import numpy as np
import optax
from flax import nnx

import partita as pt


def train_step(net, opt, x):
    loss, grads = nnx.value_and_grad(lambda net: (net(x) ** 2).mean())(net)
    opt.update(net, grads)
    return loss


net = nnx.Linear(8, 8, rngs=nnx.Rngs(0))
opt = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
pt.plan(train_step, pt.Mesh(data=4), net, opt, np.ones((8, 8), np.float32))
