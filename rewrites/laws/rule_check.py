"""Tests whether the two sides of a rule are equal: computes both on random arrays, at random indices of the variables.

wrong: dot(x, y) => x * y      x: [2, 3], y: [3, 2] at i, k and k, i: -.7 != ...
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np

from ...dialects.ground.dtypes import Array
from ...dialects.ground.errors import Error
from ...dialects.params import NO_PARAMS, ParamsAttr
from ...dialects.reference.evaluate import evaluate
from ..rules.rule import Rule, RuleApply, Variable, subterms
from .interpret_rule import IndexMaker, Indices, NoTerm, make_term
from .rule_ops import TELLS, fold_param

EXTENTS = (2, 3, 2, 4)
"""The extents of the indices that variables may have."""
INSTANCES = 120
"""The number of instances of a rule that are computed."""
ATTEMPTS = 4000
"""The number of instances that are drawn to find these: with most choices of indices, a term has no meaning."""
DTYPES = {"f": "float64", "i": "int32", "u": "uint32", "c": "complex128", "b": "bool"}
"""The kinds of numbers, each with the dtype in which it is tested."""
SIZES = (1.0, 1.0, 1e-3, 1e3, 1e6)
"""The magnitudes of the numbers in an instance."""
LOGIC = frozenset({"and", "or", "xor", "not", "eq", "ne", "select_n", "reduce_and", "reduce_or"})
"""The ops that are defined on truth values."""
CLOSE = 1e-9

At = tuple[Array, Indices]
"""An array, with an index for each of its dims."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """Computes terms, each op by its definition."""

    dtype: str

    def ids(self, term: At) -> Indices:
        return term[1]

    def number(self, value: int) -> At:
        return np.asarray(value, self.dtype), ()

    def each(self, kind: str, args: Sequence[At]) -> At:
        out = IndexMaker().each(kind, [ids for _, ids in args])
        arrays = [aligned(arg, out) for arg in args]
        shape = np.broadcast_shapes(*(each.shape for each in arrays))
        whole = [np.ascontiguousarray(np.broadcast_to(each, shape)) for each in arrays]
        dtype = "bool" if kind in TELLS else str(whole[-1].dtype)
        return evaluate(kind, NO_PARAMS, whole, [(dtype, shape)])[0], out

    def fold(self, kind: str, arg: At, keep: Collection[int]) -> At:
        array, ids = arg
        axes = tuple(dim for dim, index in enumerate(ids) if index not in keep)
        out = tuple(index for index in ids if index in keep)
        shape = tuple(extent for dim, extent in enumerate(array.shape) if dim not in axes)
        param = fold_param(kind)
        if not axes or param is None:
            return arg
        return evaluate(kind, ParamsAttr.of(**{param: axes}), [array], [(str(array.dtype), shape)])[0], out

    def product(self, left: At, right: At, keep: Collection[int]) -> At:
        out = IndexMaker().product(left[1], right[1], keep)
        return np.einsum(left[0], [*left[1]], right[0], [*right[1]], [*out]), out


def aligned(term: At, out: Indices) -> Array:
    """The array with its dims in the order of `out`, and with extent 1 for indices that it lacks."""
    array, ids = term
    array = array.transpose([ids.index(index) for index in out if index in ids])
    return array.reshape([array.shape[[o for o in out if o in ids].index(index)] if index in ids else 1 for index in out])


@dataclass(frozen=True, slots=True)
class RuleInstance:
    """Arrays for the variables of a rule, with their indices, and the indices of the result."""

    bound: Mapping[str, At]
    keep: Indices

    def sides(self, rule: Rule, dtype: str) -> tuple[Array, Array]:
        """Computes both sides."""
        maker = Arrays(dtype)
        left, right = (make_term(side, self.bound, self.keep, maker) for side in (rule.left, rule.right))
        wanted = aligned(left, self.keep)
        return wanted, np.broadcast_to(aligned(right, self.keep), wanted.shape)

    @property
    def size(self) -> tuple[int, float]:
        """The number of elements, and the largest number: the smallest counter-example is shown."""
        arrays = [array for array, _ in self.bound.values()]
        largest = [float(np.abs(array.astype("complex128")).max(initial=0)) for array in arrays]
        return sum(array.size for array in arrays), max(largest, default=0.0)

    def text(self) -> str:
        return ", ".join(f"{name} = {np.array2string(array, precision=3)}" for name, (array, _) in self.bound.items())


def kinds_of(rule: Rule) -> frozenset[str]:
    """The kinds of numbers for which a rule is a law. Raises Error, with a counter-example, if there are none."""
    problems = {kind: problem(rule, kind) for kind in DTYPES}
    if found := frozenset(kind for kind, each in problems.items() if each is None):
        return found
    raise next((each for each in problems.values() if isinstance(each, Error)), _no_instance(rule))


@cache
def problem(rule: Rule, kind: str) -> Error | str | None:
    """What is wrong with a rule for a kind of numbers: a counter-example, or an op without a meaning; None if it is a law."""
    heads = {term.head for side in (rule.left, rule.right) for term in subterms(side) if isinstance(term, RuleApply)}
    if kind == "b" and not heads <= LOGIC:
        return "an op is not one of truth values"
    try:
        return counterexample(rule, DTYPES[kind])
    except (Error, KeyError, TypeError, ValueError, np.exceptions.AxisError):
        # `and` of floats; or `integer_pow`, which has no meaning without its parameter.
        return "an op has no meaning"


def counterexample(rule: Rule, dtype: str) -> Error | None:
    """A counter-example of this dtype; None if all instances agree. Raises Error if no instance could be computed."""
    random, tried, wrong = Random(str(rule)), 0, list[tuple[RuleInstance, Array, Array]]()
    for _ in range(ATTEMPTS):
        if (instance := _instance(rule, dtype, random)) is None:
            continue
        left, right = instance.sides(rule, dtype)
        tried += 1
        if _differences(left, right):
            wrong.append((instance, left, right))
        if tried == INSTANCES:
            break
    if not tried:
        raise _no_instance(rule)
    return _wrong(rule, *min(wrong, key=lambda each: each[0].size)) if wrong else None


def _instance(rule: Rule, dtype: str, random: Random) -> RuleInstance | None:
    """Draws indices, then arrays for the variables; None if a side has no meaning at the indices."""
    names = dict.fromkeys(each.name for each in subterms(rule.left) if isinstance(each, Variable))
    size = random.choice(SIZES)
    drawn = {name: (_indices(random), random.randrange(1 << 32)) for name in names}
    bound = {name: ids for name, (ids, _) in drawn.items()}
    every = dict.fromkeys(index for ids in bound.values() for index in ids)
    keep = tuple(index for index in every if random.random() < 0.6)
    try:
        left, right = (make_term(side, bound, keep, IndexMaker()) for side in (rule.left, rule.right))
    except NoTerm:
        return None
    if not set(left) == set(keep) >= set(right):
        return None
    return RuleInstance({name: (_array(dtype, size, ids, seed), ids) for name, (ids, seed) in drawn.items()}, keep)


def _indices(random: Random) -> Indices:
    return tuple(random.sample(range(len(EXTENTS)), random.choice((0, 1, 1, 2, 2, 3))))


def _array(dtype: str, size: float, ids: Indices, seed: int) -> Array:
    shape = tuple(EXTENTS[index] for index in ids)
    numbers = np.random.default_rng(seed)
    # Zeros and numbers of both signs: where many false laws fail.
    real, imag = (numbers.normal(size=shape) * 2 * size * (numbers.random(shape) > 0.1) for _ in range(2))
    if dtype == "bool":
        return np.asarray(real > 0)
    if "int" in dtype:
        # Integers wrap around, and the extremes of the dtype show where a law does not.
        ends = numbers.choice(np.asarray([np.iinfo(dtype).min, np.iinfo(dtype).max]), shape)
        rounded = np.rint(real * 2).astype("int64")
        return np.asarray(np.where(numbers.random(shape) > 0.9, ends, rounded), "int64").astype(dtype)
    return np.asarray(real + 1j * imag if dtype.startswith("complex") else real, dtype)


def _differences(left: Array, right: Array) -> list[tuple[int, ...]]:
    """The positions at which the sides differ. Elements that are infinite or NaN on the left side are ignored."""
    finite = np.isfinite(left)
    size = np.abs(np.where(finite, left, 0).astype("complex128")).max(initial=1)
    return [*zip(*np.nonzero(np.atleast_1d(finite & ~np.isclose(left, right, CLOSE, CLOSE * size))), strict=True)]


def _wrong(rule: Rule, instance: RuleInstance, left: Array, right: Array) -> Error:
    at = _differences(left, right)[0] if left.shape else ()
    where = f" at [{', '.join(map(str, at))}]" if at else ""
    title = f"`{rule.name}` is not a law: its sides differ{where}, {left[at]:.4g} and {right[at]:.4g}"
    return Error(title, label=str(rule), notes=[f"for {instance.text()}"], helps=["correct a side; a law holds for all arrays"])


def _no_instance(rule: Rule) -> Error:
    helps = ["an index is summed only in `dot` and in folds such as `reduce_sum`", "name only ops without parameters"]
    return Error(f"`{rule.name}` has a left side that cannot be computed", label=str(rule), helps=helps)
