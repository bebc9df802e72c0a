"""Functions of unpartitioned dims: their arguments, how one of a single matrix applies to a stack, and linear algebra.

As the reference, it keeps LAPACK's names and signs.
"""

# SciPy has no annotations, and NumPy's linear algebra is generic beyond what pyright infers.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import Array, dtype_of
from ..params import Literal, ParamsAttr

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """The arguments of a function: operands, parameters, and the dtype and shape of each result."""

    args: Sequence[Array]
    params: ParamsAttr
    outs: Sequence[tuple[str, Shape]]

    def flag(self, name: str) -> bool:
        return self.params.get(name) is True

    def number(self, name: str) -> int:
        value = self.params[name]
        assert isinstance(value, int)
        return value


Function = Callable[..., Sequence[Array]]


def each(task: Task, ranks: Sequence[int], function: Function) -> list[Array]:
    """Applies the function to the last `ranks` dims of each operand, for every position of the dims before them."""
    leads = [array.shape[: array.ndim - rank] for array, rank in zip(task.args, ranks, strict=True)]
    lead = np.broadcast_shapes(*leads)
    args = [np.broadcast_to(a, (*lead, *a.shape[a.ndim - rank :])) for a, rank in zip(task.args, ranks, strict=True)]
    found = [function(*(arg[at] for arg in args)) for at in np.ndindex(*lead)]
    if not found:
        return [np.zeros((*lead, *shape[len(lead) :]), dtype_of(dtype)) for dtype, shape in task.outs]
    return [np.stack(arrays).reshape(*lead, *arrays[0].shape) for arrays in zip(*found, strict=True)]


def _scipy() -> Any:
    import scipy.linalg  # pyright: ignore[reportMissingTypeStubs]

    return scipy.linalg


def _or_nan(function: Callable[..., Array], *args: Array) -> Array:
    """NaN in the shape of the last argument where there is no answer, as for a singular matrix: JAX returns it too."""
    try:
        return function(*args)
    except np.linalg.LinAlgError:
        return np.full_like(args[-1], np.nan)


def _cholesky(x: Array) -> Sequence[Array]:
    return [_or_nan(np.linalg.cholesky, x)]


def _lu(x: Array) -> Sequence[Array]:
    (getrf,) = _scipy().get_lapack_funcs(("getrf",), (x,))
    packed, pivots, _ = getrf(x) if x.size else (x, np.zeros(min(x.shape), np.int32), 0)
    return [packed, pivots.astype(np.int32), _permutation(pivots, x.shape[0])]


def _permutation(pivots: Array, size: int) -> Array:
    """The permutation of successive row swaps: the source of each row."""
    order = np.arange(size, dtype=np.int32)
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    return order


def _qr(x: Array, pivoting: bool, full: bool) -> Sequence[Array]:
    q, r, *order = _scipy().qr(x, pivoting=pivoting, mode="full" if full else "economic")
    return [q, r, *(each.astype(np.int32) for each in order)]


def _geqrf(x: Array) -> Sequence[Array]:
    (packed, taus), _ = _scipy().qr(x, mode="raw")
    return [np.asarray(packed), taus]


def _geqp3(x: Array, pivots: Array) -> Sequence[Array]:
    (geqp3,) = _scipy().get_lapack_funcs(("geqp3",), (x,))
    packed, order, taus, *_ = geqp3(x)
    return [packed, order.astype(pivots.dtype), taus]


def _reflections(x: Array, taus: Array) -> list[Array]:
    """The reflections `1 - tau v v*` whose vectors are stored below the diagonal."""
    found: list[Array] = []
    for at, tau in enumerate(taus):
        v = np.concatenate([np.zeros(at, x.dtype), np.ones(1, x.dtype), x[at + 1 :, at]])
        found.append(np.eye(len(v), dtype=x.dtype) - tau * np.outer(v, v.conj()))
    return found


def _orthogonal(x: Array, taus: Array) -> Array:
    product = np.eye(x.shape[0], dtype=x.dtype)
    for reflection in _reflections(x, taus):
        product = product @ reflection
    return product


def _householder_product(x: Array, taus: Array) -> Sequence[Array]:
    return [_orthogonal(x, taus)[:, : x.shape[1]]]


def _ormqr(x: Array, taus: Array, b: Array, left: bool, transpose: bool) -> Sequence[Array]:
    """On one column, or from the right on one row, of `b`."""
    q = _orthogonal(x, taus)
    q = q.conj().T if transpose else q
    return [q @ b if left else b @ q]


def _eig(x: Array, left: bool, right: bool) -> Sequence[Array]:
    values, *vectors = _scipy().eig(x, left=left, right=right) if left or right else (_scipy().eigvals(x),)
    return [values, *vectors]


def _eigh(x: Array, lower: bool, subset: Literal) -> Sequence[Array]:
    values, vectors = np.linalg.eigh(x, UPLO="L" if lower else "U")
    start, end = subset if isinstance(subset, tuple) else (0, len(values))
    assert isinstance(start, int) and isinstance(end, int)
    return [vectors[:, start:end], values[start:end]]


def _svd(x: Array, vectors: bool, full: bool, subset: Literal) -> Sequence[Array]:
    start, end = subset if isinstance(subset, tuple) else (0, min(x.shape))
    assert isinstance(start, int) and isinstance(end, int)
    if not vectors:
        return [np.linalg.svd(x, compute_uv=False)[start:end]]
    u, values, v = np.linalg.svd(x, full_matrices=full)
    return [values, u, v] if full else [values[start:end], u[:, start:end], v[start:end]]


def _schur(x: Array, vectors: bool) -> Sequence[Array]:
    form, basis = _scipy().schur(x, output="complex" if x.dtype.kind == "c" else "real")
    return [form, basis] if vectors else [form]


def _hessenberg(x: Array) -> Sequence[Array]:
    (gehrd,) = _scipy().get_lapack_funcs(("gehrd",), (x,))
    packed, taus, *_ = gehrd(x)
    return [packed, taus]


def _tridiagonal(x: Array, lower: bool) -> Sequence[Array]:
    (reduce,) = _scipy().get_lapack_funcs(("hetrd" if x.dtype.kind == "c" else "sytrd",), (x,))
    packed, diagonal, beside, taus, *_ = reduce(x, lower=lower)
    return [packed, diagonal, beside, taus]


def _tridiagonal_solve(low: Array, diagonal: Array, high: Array, b: Array) -> Sequence[Array]:
    whole = np.diag(diagonal) + np.diag(low[1:], -1) + np.diag(high[:-1], 1)
    return [_or_nan(np.linalg.solve, whole, b)]


def _triangular_solve(a: Array, b: Array, task: Task) -> Sequence[Array]:
    """For one column of `b`, or from the right for one row."""
    a = np.tril(a) if task.flag("lower") else np.triu(a)
    if task.flag("unit_diagonal"):
        np.fill_diagonal(a, 1)
    a = a.T if task.flag("transpose_a") else a
    a = a.conj() if task.flag("conjugate_a") else a
    return [_or_nan(np.linalg.solve, a if task.flag("left_side") else a.T, b)]


def _symmetric_product(a: Array, c: Array, task: Task) -> Sequence[Array]:
    alpha, beta = (np.asarray(task.params[name]).astype(a.dtype) for name in ("alpha", "beta"))
    return [alpha * (a @ a.T) + beta * c]


FUNCTIONS: dict[str, Callable[[Task], list[Array]]] = {
    "cholesky": lambda t: each(t, [2], _cholesky),
    "eig": lambda t: each(t, [2], lambda x: _eig(x, t.flag("compute_left_eigenvectors"), t.flag("compute_right_eigenvectors"))),
    "eigh": lambda t: each(t, [2], lambda x: _eigh(x, t.flag("lower"), t.params.get("subset_by_index"))),
    "geqp3": lambda t: each(t, [2, 1], _geqp3),
    "geqrf": lambda t: each(t, [2], _geqrf),
    "hessenberg": lambda t: each(t, [2], _hessenberg),
    "householder_product": lambda t: each(t, [2, 1], _householder_product),
    "lu": lambda t: each(t, [2], _lu),
    "lu_pivots_to_permutation": lambda t: each(t, [1], lambda x: [_permutation(x, t.number("permutation_size"))]),
    "ormqr": lambda t: each(t, [2, 1, 1], lambda x, taus, b: _ormqr(x, taus, b, t.flag("left"), t.flag("transpose"))),
    "qr": lambda t: each(t, [2], lambda x: _qr(x, t.flag("pivoting"), t.flag("full_matrices"))),
    "schur": lambda t: each(t, [2], lambda x: _schur(x, t.flag("compute_schur_vectors"))),
    "svd": lambda t: each(
        t, [2], lambda x: _svd(x, t.flag("compute_uv"), t.flag("full_matrices"), t.params.get("subset_by_index"))
    ),
    "symmetric_product": lambda t: each(t, [2, 2], lambda a, c: _symmetric_product(a, c, t)),
    "triangular_solve": lambda t: each(t, [2, 1], lambda a, b: _triangular_solve(a, b, t)),
    "tridiagonal": lambda t: each(t, [2], lambda x: _tridiagonal(x, t.flag("lower"))),
    "tridiagonal_solve": lambda t: each(t, [1, 1, 1, 1], _tridiagonal_solve),
}
