"""Functions of unpartitioned dims: their arguments, how a function of one matrix applies to a stack, and linear algebra.

As the reference, it keeps LAPACK's names and signs.
"""

# SciPy has no annotations, and NumPy's linear algebra is generic beyond what pyright infers.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..ground.dtypes import Array, dtype_of
from ..params import ParamsAttr


@dataclass(frozen=True, slots=True)
class Task:
    """The arguments of a function: operands, parameters, and the dtype and shape of each result.

    The first `lead` dims of every operand are indices, and the others are unpartitioned.
    """

    args: Sequence[Array]
    params: ParamsAttr
    outs: Sequence[tuple[str, tuple[int, ...]]]
    lead: int

    def flag(self, name: str) -> bool:
        return self.params.get(name) is True

    def number(self, name: str) -> int:
        value = self.params[name]
        assert isinstance(value, int)
        return value


Function = Callable[..., Sequence[Array]]
"""Takes a task and the unpartitioned dims of each operand; returns those of each result."""


def each(task: Task, function: Function) -> list[Array]:
    """Applies the function to the unpartitioned dims of the operands, for every position of the dims before them."""
    lead = np.broadcast_shapes(*(array.shape[: task.lead] for array in task.args))
    args = [np.broadcast_to(array, (*lead, *array.shape[task.lead :])) for array in task.args]
    found = [function(task, *(arg[at] for arg in args)) for at in np.ndindex(*lead)]
    if not found:
        return [np.zeros((*lead, *shape[len(lead) :]), dtype_of(dtype)) for dtype, shape in task.outs]
    return [np.stack(arrays).reshape(*lead, *arrays[0].shape) for arrays in zip(*found, strict=True)]


def _scipy() -> Any:
    import scipy.linalg  # pyright: ignore[reportMissingTypeStubs]

    return scipy.linalg


def _lapack(name: str, *args: Array, **how: bool) -> Sequence[Any]:
    (function,) = _scipy().get_lapack_funcs((name,), args[:1])
    return function(*args, **how)


def _or_nan(function: Callable[..., Array], *args: Array) -> Array:
    """Calls the function; where it has no answer, returns NaN in the shape of the last argument, as JAX does."""
    try:
        return function(*args)
    except np.linalg.LinAlgError:
        return np.full_like(args[-1], np.nan)


def _lu(task: Task, x: Array) -> Sequence[Array]:
    packed, pivots, *_ = _lapack("getrf", x) if x.size else (x, np.zeros(min(x.shape), np.int32))
    return [packed, pivots.astype(np.int32), _permutation(pivots, x.shape[0])]


def _permutation(pivots: Array, size: int) -> Array:
    """The permutation of successive row swaps: the source of each row."""
    order = np.arange(size, dtype=np.int32)
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    return order


def _qr(task: Task, x: Array) -> Sequence[Array]:
    q, r, *order = _scipy().qr(x, pivoting=task.flag("pivoting"), mode="full" if task.flag("full_matrices") else "economic")
    return [q, r, *(each.astype(np.int32) for each in order)]


def _geqrf(task: Task, x: Array) -> Sequence[Array]:
    (packed, taus), _ = _scipy().qr(x, mode="raw")
    return [np.asarray(packed), taus]


def _geqp3(task: Task, x: Array, pivots: Array) -> Sequence[Array]:
    packed, order, taus, *_ = _lapack("geqp3", x)
    return [packed, order.astype(pivots.dtype), taus]


def _orthogonal(x: Array, taus: Array) -> Array:
    """The product of the reflections `1 - tau v v*` whose vectors are stored below the diagonal."""
    product = np.eye(x.shape[0], dtype=x.dtype)
    for at, tau in enumerate(taus):
        v = np.concatenate([np.zeros(at, x.dtype), np.ones(1, x.dtype), x[at + 1 :, at]])
        product = product @ (np.eye(len(v), dtype=x.dtype) - tau * np.outer(v, v.conj()))
    return product


def _ormqr(task: Task, x: Array, taus: Array, b: Array) -> Sequence[Array]:
    """Multiplies one column of `b` from the left by the orthogonal matrix, or one row from the right."""
    q = _orthogonal(x, taus)
    q = q.conj().T if task.flag("transpose") else q
    return [q @ b if task.flag("left") else b @ q]


def _eig(task: Task, x: Array) -> Sequence[Array]:
    left, right = task.flag("compute_left_eigenvectors"), task.flag("compute_right_eigenvectors")
    values, *vectors = _scipy().eig(x, left=left, right=right) if left or right else (_scipy().eigvals(x),)
    return [values, *vectors]


def _subset(task: Task) -> slice:
    """The slice of values that a decomposition keeps."""
    subset = task.params.get("subset_by_index")
    return slice(*cast("tuple[int, int]", subset)) if subset is not None else slice(None)


def _eigh(task: Task, x: Array) -> Sequence[Array]:
    values, vectors = np.linalg.eigh(x, UPLO="L" if task.flag("lower") else "U")
    return [vectors[:, _subset(task)], values[_subset(task)]]


def _svd(task: Task, x: Array) -> Sequence[Array]:
    kept, full = _subset(task), task.flag("full_matrices")
    if not task.flag("compute_uv"):
        return [np.linalg.svd(x, compute_uv=False)[kept]]
    u, values, v = np.linalg.svd(x, full_matrices=full)
    return [values, u, v] if full else [values[kept], u[:, kept], v[kept]]


def _schur(task: Task, x: Array) -> Sequence[Array]:
    form, basis = _scipy().schur(x, output="complex" if x.dtype.kind == "c" else "real")
    return [form, basis] if task.flag("compute_schur_vectors") else [form]


def _tridiagonal_solve(task: Task, low: Array, diagonal: Array, high: Array, b: Array) -> Sequence[Array]:
    whole = np.diag(diagonal) + np.diag(low[1:], -1) + np.diag(high[:-1], 1)
    return [_or_nan(np.linalg.solve, whole, b)]


def _triangular_solve(task: Task, a: Array, b: Array) -> Sequence[Array]:
    """Solves for one column of `b`, or from the right for one row."""
    a = np.tril(a) if task.flag("lower") else np.triu(a)
    if task.flag("unit_diagonal"):
        np.fill_diagonal(a, 1)
    a = a.T if task.flag("transpose_a") else a
    a = a.conj() if task.flag("conjugate_a") else a
    return [_or_nan(np.linalg.solve, a if task.flag("left_side") else a.T, b)]


def _symmetric_product(task: Task, a: Array, c: Array) -> Sequence[Array]:
    alpha, beta = (np.asarray(task.params[name]).astype(a.dtype) for name in ("alpha", "beta"))
    return [alpha * (a @ a.T) + beta * c]


FUNCTIONS: dict[str, Function] = {
    "cholesky": lambda task, x: [_or_nan(np.linalg.cholesky, x)],
    "eig": _eig,
    "eigh": _eigh,
    "geqp3": _geqp3,
    "geqrf": _geqrf,
    "hessenberg": lambda task, x: _lapack("gehrd", x)[:2],
    "householder_product": lambda task, x, taus: [_orthogonal(x, taus)[:, : x.shape[1]]],
    "lu": _lu,
    "lu_pivots_to_permutation": lambda task, x: [_permutation(x, task.number("permutation_size"))],
    "ormqr": _ormqr,
    "qr": _qr,
    "schur": _schur,
    "svd": _svd,
    "symmetric_product": _symmetric_product,
    "triangular_solve": _triangular_solve,
    "tridiagonal": lambda task, x: _lapack("hetrd" if x.dtype.kind == "c" else "sytrd", x, lower=task.flag("lower"))[:4],
    "tridiagonal_solve": _tridiagonal_solve,
}
"""Functions of matrices; `each` applies them to a stack."""
