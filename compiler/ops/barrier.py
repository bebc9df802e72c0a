"""An optimization barrier, which XLA keeps on every platform except the CPU, where it is left out.

XLA:CPU still merges the values that a barrier separates, but late, after it has decided which values share a buffer. A
`dynamic_update_slice` is then written in place over values that are still read, and the results are wrong. This also happens
to a barrier in plain JAX. A plan leaves out the user's barriers as well as its own.

Device-local code is never differentiated, so this primitive has no derivative; the body of a `shard_map` can be mapped.

    %x, %y = barrier %x, %y    -->    on TPU and GPU: stablehlo.optimization_barrier %x, %y;    on CPU: nothing
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from jax import Array
from jax.extend.core import Primitive

from ..jax_private import batching, lax, mlir

T = TypeVar("T")

barrier_p: Any = Primitive("optimization_barrier_but_on_cpu")
barrier_p.multiple_results = True


def _identity(*values: T) -> list[T]:
    return list(values)


def _kept(*values: Array) -> list[Array]:
    return list(lax.optimization_barrier(values))


def _batch(values: Sequence[Array], dims: Sequence[int | None]) -> tuple[list[Array], Sequence[int | None]]:
    return barrier_p.bind(*values), dims


def _lower(_: object, *values: T) -> list[T]:
    return list(values)


barrier_p.def_impl(_identity)
barrier_p.def_abstract_eval(_identity)
batching.primitive_batchers[barrier_p] = _batch
mlir.register_lowering(barrier_p, mlir.lower_fun(_kept, multiple_results=True))
mlir.register_lowering(barrier_p, _lower, platform="cpu")
