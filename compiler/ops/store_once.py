"""Makes XLA:CPU store a value once, instead of computing it again in every loop that reads it.

XLA:CPU fuses a chain of elementwise ops into each of its readers, whatever it costs. A function that is not inlined stops that;
an optimization barrier does not, because XLA:CPU removes it first. Other platforms weigh the cost, and need no help.

Device-local code is never differentiated, so this primitive has no derivative.

    %p = stored %p    -->    on CPU: call @stored(%p), never inlined;    on TPU and GPU: nothing
"""

from typing import Any

from jax import Array

from ..jax_private import batching, jax, mlir, set_xla_metadata
from .identity_primitives import identity

stored_p: Any = identity("stored")


def stored(x: Array) -> Array:
    """Returns `x`; XLA:CPU stores it once."""
    return stored_p.bind(x)


def _called(x: Array) -> Array:
    with set_xla_metadata(inlineable="false"):
        return jax.jit(_identity)(x)


def _identity(x: Array) -> Array:
    return x


batching.defvectorized(stored_p)
mlir.register_lowering(stored_p, mlir.lower_fun(_called, multiple_results=False), platform="cpu")
