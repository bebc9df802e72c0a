"""The training step of `examples/resnet.py` on one device's images: statistics and gradients are means over all devices."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import optax

from partita.examples import resnet

Tree = Any


def train_step(state: resnet.TrainState, batch: resnet.Batch) -> tuple[resnet.TrainState, jax.Array]:
    def loss_fn(params: Tree) -> tuple[jax.Array, Tree]:
        variables = {"params": params, "batch_stats": state.batch_stats}
        with nn.intercept_methods(_norms_over_data):
            logits, changed = state.apply_fn(variables, batch["image"], mutable=["batch_stats"])
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
        return loss, changed["batch_stats"]

    (loss, batch_stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    loss, grads = jax.lax.pmean((loss, grads), "data")
    return state.apply_gradients(grads=grads, batch_stats=batch_stats), loss


def _norms_over_data(call: Callable[..., Any], args: Any, kwargs: Any, context: nn.module.InterceptorContext) -> Any:
    """Flax's own batch norm over an axis, without a change to the model: modules are frozen, so the field is set by force."""
    if isinstance(context.module, nn.BatchNorm):
        object.__setattr__(context.module, "axis_name", "data")
    return call(*args, **kwargs)
