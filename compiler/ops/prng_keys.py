"""Arrays of random keys. Inside of a program they are the `uint32` arrays that hold the keys.

A key type adds only the generator's name and the shape of its keys.

    key<fry>[16]  -->  u32[16, 2]

Arrays of `float0`, JAX's derivatives with respect to integers, are `bool` inside, as in JAX's compiler.
"""

from typing import TypeAlias, cast

import jax
import numpy as np
from jax import Array
from jax.core import AbstractValue

from ...dialects.ground.dtypes import short
from .. import jax_private as untyped
from ..jax_private import Shaped

Aval: TypeAlias = "Shaped | AbstractValue"
"""An aval. A type checker sees the avals of equations without a shape."""


def is_key(aval: object) -> bool:
    """Whether an aval or array is of random keys."""
    return hasattr(aval, "dtype") and untyped.jax.dtypes.issubdtype(cast(Shaped, aval).dtype, untyped.jax.dtypes.prng_key)


def is_void(aval: object) -> bool:
    """Whether an aval or array is of `float0`, which has only a shape."""
    return getattr(aval, "dtype", None) == untyped.jax.dtypes.float0


def implementation(aval: Aval) -> str:
    """The name of the generator of these keys: `threefry2x32`."""
    return cast(str, cast(Shaped, aval).dtype._impl.name)


def key_shape(aval: Aval) -> tuple[int, ...]:
    """The shape of the `uint32` array in one key: `(2,)` for threefry; `()` for other arrays."""
    return tuple(cast("tuple[int, ...]", cast(Shaped, aval).dtype._impl.key_shape)) if is_key(aval) else ()


def key_rank(aval: Aval) -> int:
    """The number of trailing dims of the physical array that make up one key; 0 for other arrays."""
    return len(key_shape(aval))


def physical(aval: Aval) -> jax.ShapeDtypeStruct:
    """The shape and dtype that an aval has inside of a program."""
    aval = cast(Shaped, aval)
    if is_key(aval):
        return jax.ShapeDtypeStruct((*aval.shape, *key_shape(aval)), "uint32")
    dtype = bool if is_void(aval) else aval.dtype
    return jax.ShapeDtypeStruct(aval.shape, dtype, weak_type=getattr(aval, "weak_type", False))


def aval_text(aval: Aval) -> str:
    """The text of an aval in errors: `f32[4, 8]`, `key<fry>[2]`."""
    aval = cast(Shaped, aval)
    dtype = aval.dtype.name if is_key(aval) else short(str(aval.dtype))
    return f"{dtype}[{', '.join(map(str, aval.shape))}]"


def unwrap(array: Array) -> Array:
    """Returns the `uint32` array inside of an array of keys, `False` for `float0`, and any other array unchanged."""
    if is_void(array):
        return cast(Array, np.zeros(array.shape, bool))
    return untyped.jax.random.key_data(array) if is_key(array) else array


def wrap(array: Array, impl: str | None) -> Array:
    """Makes an array of keys of a `uint32` array. Without a generator, returns the array unchanged."""
    return array if impl is None else untyped.jax.random.wrap_key_data(array, impl=impl)
