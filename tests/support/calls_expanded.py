"""Calls of primitives that are expanded into others, by a rule or by JAX's own lowering."""

# JAX annotates its functions only in part, and its sparse arrays not at all.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportMissingTypeStubs=false

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from call import Array, Call, bools, prim, signed, words
from jax import lax
from jax.experimental import sparse
from jax.experimental.sparse import coo, csr

GENERATORS = "threefry4x32 philox2x32 philox4x32".split()


def matrix(*shape: int) -> Array:
    """Half of its elements are zero."""
    return signed(*shape) * bools(*shape)


def sparse_arrays() -> Iterator[Call]:
    x, v = matrix(8, 6), signed(6)
    one = (((1,), (0,)), ((), ()))
    bcoo, bcsr = sparse.BCOO.fromdense, sparse.BCSR.fromdense
    functions: dict[str, Any] = {
        "bcoo_dot_general": lambda x, v: bcoo(x, nse=48) @ v,
        "bcoo_fromdense": lambda x, v: sparse.bcoo_fromdense(x, n_batch=1, nse=6).data * v[None],
        "bcoo_transpose": lambda x, v: (bcoo(x, nse=48).T * v[:, None]).todense(),
        "bcoo_spdot_general": lambda x, v: (bcoo(x, nse=48) @ bcoo(x.T, nse=48)).todense(),
        "bcoo_dot_general_sampled": lambda x, v: sparse.bcoo_dot_general_sampled(
            x, x.T, bcoo(x @ x.T, nse=64).indices, dimension_numbers=one
        ),
        "bcsr_dot_general": lambda x, v: bcsr(x, nse=48) @ v,
        "bcsr_todense": lambda x, v: bcsr(x, nse=48).todense() * v[None],
        "csr_matvec": lambda x, v: csr.csr_matvec(csr.csr_fromdense(x, nse=48), v),
        "coo_matvec": lambda x, v: coo.coo_matvec(coo.coo_fromdense(x, nse=48), v),
        "coo_todense": lambda x, v: coo.coo_todense(coo.coo_fromdense(x, nse=48)) * v[None],
    }
    for name, function in functions.items():
        yield Call(name, function, (x, v))


def numbers() -> Iterator[Call]:
    """Integers, random bits of rarer generators, solvers."""
    for dtype in (np.uint32, np.int32, np.uint8, np.int16):
        x, y = (words(8, 16).view(dtype)[:, :16] for _ in range(2))
        yield Call("mulhi", lax.mulhi, (x, y), np.dtype(dtype).name)
    for name in GENERATORS:
        yield Call(name, lambda s, n=name: bits(s, n), (words(),), "bits")
    a = signed(8, 3, 3) + 4 * np.eye(3, dtype=np.float32)
    yield Call("custom_linear_solve", lambda a, b: jnp.linalg.solve(a, b), (a, signed(8, 3, 2)))
    yield Call("tile", lambda x: jnp.tile(x, (1, 3)), (signed(8, 4),))
    yield Call("stack", lambda x, y: jnp.stack([x, y], 1), (signed(8, 4), signed(8, 4)))
    yield Call("unstack", lambda x: jnp.unstack(x, axis=1), (signed(8, 4),))
    yield Call("empty", prim("empty", shape=(8,), dtype=np.dtype("float32"), out_sharding=None), ())


def bits(seed: Array, name: str) -> Array:
    """Random bits of many keys, after a split and a fold_in."""
    keys = jax.random.split(jax.random.key(seed, impl=name), 8)
    return jax.vmap(lambda key: jax.random.bits(jax.random.fold_in(key, 3), (4,)))(keys)
