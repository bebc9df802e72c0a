"""Arrays of random keys, which inside a program are the `uint32` arrays that hold them.

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
"""An aval; for a type checker, the avals of equations have no shape."""


def is_key(aval: object) -> bool:
    """Whether it is an aval or array of random keys."""
    return hasattr(aval, "dtype") and untyped.jax.dtypes.issubdtype(cast(Shaped, aval).dtype, untyped.jax.dtypes.prng_key)


def is_void(aval: object) -> bool:
    """Whether it is an aval or array of `float0`, which has only a shape."""
    return getattr(aval, "dtype", None) == untyped.jax.dtypes.float0


def implementation(aval: Aval) -> str:
    """The name of the generator of these keys: `threefry2x32`."""
    return cast(str, cast(Shaped, aval).dtype._impl.name)


def key_shape(aval: Aval) -> tuple[int, ...]:
    """The shape of the `uint32` array that holds one element: `(2,)` for a threefry key, `()` for other arrays."""
    return tuple(cast("tuple[int, ...]", cast(Shaped, aval).dtype._impl.key_shape)) if is_key(aval) else ()


def key_rank(aval: Aval) -> int:
    """How many trailing dims of the physical array make one element; 0 for other arrays."""
    return len(key_shape(aval))


def physical(aval: Aval) -> jax.ShapeDtypeStruct:
    """The shape and dtype that an aval has inside a program."""
    aval = cast(Shaped, aval)
    if is_key(aval):
        return jax.ShapeDtypeStruct((*aval.shape, *key_shape(aval)), "uint32")
    dtype = bool if is_void(aval) else aval.dtype
    return jax.ShapeDtypeStruct(aval.shape, dtype, weak_type=getattr(aval, "weak_type", False))


def text(aval: Aval) -> str:
    """An aval as errors write it: `f32[4, 8]`, `key<fry>[2]`."""
    aval = cast(Shaped, aval)
    dtype = aval.dtype.name if is_key(aval) else short(str(aval.dtype))
    return f"{dtype}[{', '.join(map(str, aval.shape))}]"


def unwrap(array: Array) -> Array:
    """The `uint32` array inside an array of keys, `False` for `float0`; any other value unchanged."""
    if is_void(array):
        return cast(Array, np.zeros(array.shape, bool))
    return untyped.jax.random.key_data(array) if is_key(array) else array


def wrap(array: Array, impl: str | None) -> Array:
    """A `uint32` array as an array of this generator's keys; without a generator, the array itself."""
    return array if impl is None else untyped.jax.random.wrap_key_data(array, impl=impl)
