"""Calls of linear algebra: stacks of small matrices, well conditioned."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from call import RANDOM, Array, Call, ints, prim, signed
from jax import lax
from jax.lax import linalg


def definite(*shape: int) -> Array:
    """Symmetric matrices with eigenvalues well apart."""
    basis = np.linalg.qr(RANDOM.normal(size=shape))[0]
    return ((basis * np.arange(1, shape[-1] + 1)) @ np.swapaxes(basis, -1, -2)).astype(np.float32)


def dominant(*shape: int) -> Array:
    """Matrices whose diagonal outweighs the rest."""
    return signed(*shape) + 4 * np.eye(shape[-1], dtype=np.float32)


def complex_(*shape: int) -> Array:
    return (signed(*shape) + 1j * signed(*shape)).astype(np.complex64)


def matrices() -> Iterator[Call]:
    x, tall, wide = dominant(8, 3, 3), signed(8, 4, 3), signed(8, 3, 4)
    yield Call("cholesky", lambda x: linalg.cholesky(x, symmetrize_input=False), (definite(8, 3, 3),))
    yield Call("lu", prim("lu"), (x,))
    yield Call("lu", prim("lu"), (tall,), "tall")
    yield Call("lu_pivots_to_permutation", lambda p: linalg.lu_pivots_to_permutation(p, 5), (ints(8, 3, high=5),))
    for what, full, pivoting in (("", False, False), ("full", True, False), ("pivots", False, True)):
        yield Call("qr", lambda x, f=full, p=pivoting: linalg.qr(x, full_matrices=f, pivoting=p), (tall,), what)
    yield Call("geqrf", prim("geqrf"), (tall,))
    yield Call("geqp3", lambda x: prim("geqp3", use_magma=None)(x, jnp.zeros((x.shape[0], 3), jnp.int32)), (tall,))
    packed, taus = np.linalg.qr(tall, mode="raw")
    packed = np.swapaxes(packed, -1, -2)
    yield Call("householder_product", linalg.householder_product, (packed, taus))
    for left, transpose in ((True, False), (False, True)):
        c = signed(8, 4, 16) if left else signed(8, 16, 4)
        yield Call(
            "ormqr",
            prim("ormqr", left=left, transpose=transpose),
            (packed, taus, c),
            "left" if left else "right",
        )
    yield from spectra(x, wide)
    yield from solves()


def eigen(x: Array, vectors: bool) -> Array:
    """The eigenvalues, and the part of the vectors that has no phase."""
    values, *more = linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=vectors)
    return [values, *map(abs, more)]


def composed(x: Array, full: bool) -> Array:
    """The singular values, and the matrix that the factors make: their signs are free."""
    u, s, v = linalg.svd(x, full_matrices=full)
    return s, jnp.einsum("bij,bj,bjk->bik", u, s, v[:, : s.shape[-1]])


def symmetric(x: Array) -> Array:
    vectors, values = linalg.eigh(x, symmetrize_input=False)
    return values, jnp.einsum("bij,bj,bkj->bik", vectors, values, vectors)


def spectra(x: Array, wide: Array) -> Iterator[Call]:
    """Values, and vectors only as far as their signs do not matter."""
    for vectors in (False, True):
        yield Call("eig", lambda x, v=vectors: eigen(x, v), (x,), "vectors" if vectors else "")
        yield Call("schur", lambda x, v=vectors: linalg.schur(x, compute_schur_vectors=v), (x,), "vectors" if vectors else "")
    yield Call("svd", lambda x: linalg.svd(x, compute_uv=False), (wide,))
    for full in (False, True):
        yield Call("svd", lambda x, f=full: composed(x, f), (wide,), "full" if full else "thin")
    yield Call("eigh", symmetric, (definite(8, 3, 3),))
    yield Call("hessenberg", prim("hessenberg"), (x,))
    yield Call("tridiagonal", lambda x: linalg.tridiagonal(x), (definite(8, 4, 4),))
    yield Call("symmetric_product", lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5), (wide, definite(8, 3, 3)))


def solves() -> Iterator[Call]:
    a = dominant(8, 3, 3)
    for left in (True, False):
        b = signed(8, 3, 16) if left else signed(8, 16, 3)
        for lower, transpose in ((True, False), (False, True)):
            yield Call(
                "triangular_solve",
                lambda a, b, left=left, lower=lower, transpose=transpose: linalg.triangular_solve(
                    a, b, left_side=left, lower=lower, transpose_a=transpose
                ),
                (a, b),
                f"{'left' if left else 'right'}-{'lower' if lower else 'upper-transposed'}",
            )
    yield Call(
        "triangular_solve",
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, conjugate_a=True, transpose_a=True, unit_diagonal=True),
        (complex_(8, 3, 3), complex_(8, 3, 8)),
        "complex",
    )
    bands = signed(8, 4), signed(8, 4) + 4, signed(8, 4)
    yield Call("tridiagonal_solve", linalg.tridiagonal_solve, (*bands, signed(8, 4, 16)))
    x = signed(8, 16, 6)
    yield Call("fft", lambda x: lax.fft(x, "FFT", (6,)), (complex_(8, 6),))
    yield Call("fft", lambda x: lax.fft(x, "IFFT", (6,)), (complex_(8, 4, 6),), "inverse")
    yield Call("fft", lambda x: lax.fft(x, "RFFT", (6,)), (signed(8, 16, 6),), "real")
    yield Call("fft", lambda x: lax.fft(x, "IRFFT", (6,)), (complex_(8, 16, 4),), "to-real")
    yield Call("approx_top_k", lambda x: lax.approx_max_k(x, 2, reduction_dimension=1), (signed(8, 6, 16),))
    yield Call("approx_top_k", lambda x: lax.approx_min_k(x, 2), (x,), "least")
