"""A traced program as JAX runs it on whole arrays: every plan of it must compute the same."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from partita.compiler.ops.bind import run_block
from partita.compiler.trace.trace import Traced


def unpartitioned(traced: Traced) -> Callable[..., Any]:
    """The program as a function with the signature of the traced one, run by JAX on whole arrays."""

    def run(*args: Any, **kwargs: Any) -> Any:
        inputs = [*traced.flatten(args, kwargs), *traced.consts]
        return traced.unflatten(run_block(traced.main.body.block, inputs, traced.foreign))

    return jax.jit(run, static_argnames=tuple(traced.static))
