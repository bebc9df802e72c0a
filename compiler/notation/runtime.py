"""The functions that generated code calls while it is traced, besides `jax.numpy` and `jax.lax`.

JAX skips these frames, so the traced ops point to lines of the text.
"""

import contextlib
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, cast

import numpy as np
from jax import Array

from ...dialects.definitions.registry import definitions
from ...dialects.ground.errors import Error
from ...dialects.ground.monoids import MONOIDS
from ...dialects.params import ParamsAttr
from ..jax_private import jax, jnp, lax
from ..ops.bind import bind_local
from ..ops.monoids import SPELLED
from ..ops.params import ArrayLike, decode
from ..ops.primitives import find_primitive
from . import scalar_functions
from .terms import type_text

Sizes = tuple[int, ...]
Edges = tuple[tuple[int, int], ...]


def take(function: str, name: str, dtype: str, shape: Sizes, x: Array) -> Array:
    """The argument, if it has the declared type. Raises Error otherwise."""
    if not isinstance(x, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
        helps = ["pass a JAX or NumPy array, or a number"]
        raise Error(f"argument `{name}` of `{function}` must be an array, got a {type(x).__name__}", helps=helps)
    given = jnp.result_type(x).name, jnp.shape(x)
    if given != (dtype, shape):
        title = f"argument `{name}` of `{function}` is declared as {type_text(dtype, shape)}, got {type_text(*given)}"
        raise Error(title, helps=["pass the declared type, or change the file"])
    # A NumPy array would be indexed by NumPy's rules, which differ from JAX's.
    return jnp.asarray(x)


def apply(name: str, text: str, dtype: str, *args: Array) -> Array:
    """Applies the elementwise op `name`; numbers take the dtype of the arrays."""
    arrays = [literal(arg, dtype) if isinstance(arg, bool | int | float) else arg for arg in args]
    return scalar_functions.compute(name, text, dtype, arrays)


def literal(value: float, dtype: str) -> Array:
    """The number as an array, for primitives that take only arrays."""
    return cast(Array, np.asarray(value, jnp.dtype(dtype)))


def opaque(name: str, text: str, shapes: Sequence[Sizes], *arrays: Array) -> list[Array]:
    """Calls a JAX primitive on whole arrays, with parameters as the IR shows them. Raises KeyError for an unknown one."""
    own = dict(scalar_functions.parameters(text).items())
    dtypes = own.pop("result", None)
    if name not in definitions or name == "whole":
        find_primitive(name)
        return bind_local("whole", ParamsAttr.of(primitive=name, **own), arrays, [])
    given = dtypes if isinstance(dtypes, tuple) else (arrays[0].dtype.name if arrays else "float32",) * len(shapes)
    types = tuple(zip(map(str, given), shapes, strict=True))
    if name != "dynamic_slice":
        return bind_local(name, ParamsAttr.of(**own), arrays, types, alone=True)
    # On whole arrays the slice itself clamps the starts; on blocks the starts are clamped first.
    decoded = decode(name, ParamsAttr.of(**own), tuple(np.shape(each) for each in arrays), types)
    return [cast(Any, find_primitive(name)).bind(*arrays, **decoded)]


@cache
def made_of(name: str, params: str, shapes: tuple[Sizes, ...], given: tuple[ArrayLike, ...]) -> list[ArrayLike]:
    """The types of a primitive's results. Raises JAX's error for wrong parameters, some of which only lowering finds."""
    structs = [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in given]
    traced = jax.jit(partial(opaque, name, params, shapes)).trace(*structs)
    # A lowering that is missing here may exist on another platform.
    with contextlib.suppress(NotImplementedError):
        traced.lower()
    return [(each.dtype.name, tuple(each.shape)) for each in traced.out_info]


def choose(condition: Array, then: Array, otherwise: Array) -> Array:
    """Calls `jnp.where`, and lets it broadcast leading dims even where the user's settings forbid this."""
    with jax.numpy_rank_promotion("allow"):
        return jnp.where(condition, then, otherwise)


def scatter_sum(x: Array, extents: Sizes, *places: Array) -> Array:
    """Adds the updates at each position of an array; updates outside the array are dropped."""
    zeros = jnp.zeros((*extents, *x.shape[places[0].ndim :]), x.dtype)
    return zeros.at[places].add(x, mode="drop", wrap_negative_indices=False)


def convolve(x: Array, kernel: Array, strides: Sizes, padding: Edges, dilation: Sizes, dims: tuple[Sizes, ...]) -> Array:
    """Computes a convolution; `dims` are the batch, the feature and the spatial dims of image, kernel and result."""
    numbers = lax.ConvDimensionNumbers(*dims)
    return lax.conv_general_dilated(x, kernel, strides, padding, rhs_dilation=dilation, dimension_numbers=numbers)


def pool(monoid: str, x: Array, window: Sizes, strides: Sizes, padding: Edges, dilation: Sizes) -> Array:
    """Folds over windows; positions outside the array hold the unit."""
    start = MONOIDS[monoid].unit(x.dtype)
    return lax.reduce_window(x, start, SPELLED[monoid].combine, window, strides, padding, window_dilation=dilation)
