"""JAX's names for the monoids of `dialects/ground/monoids.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jax import Array

from ...dialects.definitions.registry import definitions
from ..jax_private import jnp, lax


@dataclass(frozen=True, slots=True)
class Spelled:
    """The JAX functions of a monoid.

    * `combine`: the function of two arrays of one shape; `reduce`: the fold over dims, which is also the name of its primitive.
    * `across`: the primitive that folds over the devices of mesh axes.
    """

    combine: Callable[[Array, Array], Array]
    reduce: Callable[[Array, Sequence[int]], Array] | None = None
    across: str = ""


SPELLED: Mapping[str, Spelled] = {
    "sum": Spelled(lax.add, lax.reduce_sum, "psum"),
    "prod": Spelled(lax.mul, lax.reduce_prod),
    "max": Spelled(lax.max, lax.reduce_max, "pmax"),
    "min": Spelled(lax.min, lax.reduce_min, "pmin"),
    "all": Spelled(lax.bitwise_and, lax.reduce_and),
    "any": Spelled(lax.bitwise_or, lax.reduce_or),
    "xor": Spelled(lax.bitwise_xor, lax.reduce_xor),
    "logsumexp": Spelled(jnp.logaddexp),
}
"""The monoids, by their names in index notation."""

WRITTEN: Sequence[str] = [fold for fold in SPELLED if hasattr(jnp, fold)]
"""The folds that users write in index notation: those that `jax.numpy` has."""


def has_windowed_fold(fold: str) -> bool:
    """Whether JAX has a windowed fold of this kind."""
    return f"reduce_window_{fold}" in definitions
