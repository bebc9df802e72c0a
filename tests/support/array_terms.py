"""The meaning of terms of builders, sums and masks, on NumPy, and random instances of the left sides of their rules."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any, cast

import numpy as np
from collective_terms import Bindings, random_placed
from lockstep import Value, distribute
from tiles import Tile

from partita.dialects.mesh import Mesh
from partita.rewrites.rules.compile import Environment
from partita.rewrites.rules.rule import Rule, RuleApply, Term, Variable

Array = np.ndarray[Any, Any]

# Builders: a layout is a mesh and its tiles.


@dataclass(frozen=True)
class Lay:
    mesh: Mesh
    shape: tuple[int, ...]
    tiles: tuple[Tile, ...]


def builder_instance(rule: Rule, random: Random) -> tuple[Bindings, Environment]:
    """Layouts L and M, arrays or their parts, and axes with a value for each of their iterations."""
    bound: Bindings = {"a": 0, "b": 1}
    for lay, name in (("L", "x"), ("M", "y")):
        placed = random_placed(random)
        bound[lay] = layout = Lay(placed.mesh, placed.shape, placed.tiles)
        whole = np.random.default_rng(random.randrange(1 << 16)).integers(0, 1000, layout.shape)
        bound[name] = whole if rule.name == "eta" else distribute(whole, layout.tiles, layout.mesh)
    if rule.name == "interchange":
        bound["x"] = {(i, j): random.randrange(100) for i in range(2) for j in range(3)}
    return bound, {"before": _true}


def builder(term: object) -> object:
    if not isinstance(term, tuple):
        return term
    head, one, other = cast("tuple[str, object, object]", term)
    if head == "both":
        return {0: builder(one), 1: builder(other)}
    if head == "each":
        # The values by iteration, whichever axis comes first.
        return builder(other)
    if not isinstance(one, Lay):
        (_, *layouts), (_, *parts) = cast("tuple[tuple[object, ...], tuple[object, ...]]", (one, other))
        return {at: builder((head, *each)) for at, each in enumerate(zip(layouts, parts, strict=True))}
    if head == "slice":
        return distribute(cast(Array, builder(other)), one.tiles, one.mesh)
    return _built(one, cast(Value, builder(other)))


def _built(layout: Lay, value: Value) -> Array:
    order = distribute(np.arange(prod(layout.shape)).reshape(layout.shape), layout.tiles, layout.mesh)
    whole = np.zeros(layout.shape, int)
    for device, where in order.items():
        whole.flat[where.ravel()] = value[device].ravel()
    return whole


# Linearity: axis 0 runs over r, axis 1 over k; a value outside `sum(r, .)` does not vary along r.


def linear_instance(rule: Rule, random: Random) -> tuple[Bindings, Environment]:
    bound: Bindings = {}
    generator = np.random.default_rng(random.randrange(1 << 16))
    sizes = tuple(random.randint(1, 4) for _ in range(3))

    def fill(term: Term, inside: frozenset[str]) -> None:
        match term:
            case RuleApply("sum", (Variable(over), body)):
                bound[over] = "rk".index(over)
                fill(body, inside | {over})
            case RuleApply(_, args):
                for argument in args:
                    fill(argument, inside)
            case Variable(name):
                shape = (sizes[0] if "r" in inside else 1, *sizes[1:])
                bound[name] = _numbers(name, rule.left.head, shape, generator)
            case _:
                pass

    fill(rule.left, frozenset())
    return bound, {"widening": _true, "field": _true}


def _true(*_: object) -> bool:
    """Here `cast` converts floats to double precision, and axes may come in any order."""
    return True


def _numbers(name: str, head: str, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Numbers with exact results in every operation: small integers, and powers of two as divisors."""
    if name == "c":
        return generator.integers(0, 2, shape).astype(bool)
    if head == "div" and name == "y":
        return 2.0 ** generator.integers(-3, 3, shape)
    real = generator.integers(-9, 9, shape).astype(np.float32)
    return real + 1j * generator.integers(-9, 9, shape) if head in ("real", "imag", "conj") else real


def linear(term: object) -> Any:
    if not isinstance(term, tuple):
        return term
    head, *args = cast("tuple[str, *tuple[object, ...]]", term)
    return _scalar(head, [linear(argument) for argument in args])


def _scalar(head: str, args: list[Any]) -> Any:
    match head, args:
        case "sum", [axis, x]:
            return x.sum(axis=axis, keepdims=True)
        case "add", [x, y]:
            return x + y
        case "sub", [x, y]:
            return x - y
        case "mul", [x, y]:
            return x * y
        case "div", [x, y]:
            return x / y
        case "neg", [x]:
            return -x
        case "either", [x, y]:
            # Which one is the same for every iteration of r: the first where k is even.
            odd: Array = np.arange(int(x.shape[1]), dtype=np.int64)[:, None] % 2 == 1
            return cast(Array, np.where(odd, y, x))
        case "select", [c, x, y]:
            return cast(Array, np.where(c, x, y))
        case "cast", [x]:
            return x.astype(np.float64)
        case "complex", [x, y]:
            return x + 1j * y
        case str(function), [x]:
            return getattr(np, str(function))(x)
        case _:
            raise AssertionError(head)


# Masks: axis 0 runs over the iterations of a; whole arrays are the same on all of them.

TRIPS, BLOCK, COUNT = 4, 3, 5
COORDINATE = np.arange(TRIPS)[:, None]


def mask_instance(rule: Rule, random: Random) -> tuple[Bindings, Environment]:
    generator = np.random.default_rng(random.randrange(1 << 16))

    def same(below: int) -> Array:
        return np.stack([generator.integers(0, below, COUNT)] * TRIPS)

    bound: Bindings = {"a": "a", "s": "s", "m": BLOCK, "n": TRIPS * BLOCK, "k": same(TRIPS * BLOCK)}
    if rule.name == "padded":
        bound |= {"n": random.randint(1, TRIPS * BLOCK), "u": -7}
    blocks = rule.name in ("lookup", "found", "scanned", "padded", "selected", "dealt", "sorted")
    bound["x"] = generator.integers(0, 9, (TRIPS, BLOCK)) if blocks else same(9)
    if rule.name == "chained":
        whole = (np.stack([generator.integers(0, 9, TRIPS * BLOCK)] * TRIPS) for _ in range(2))
        return bound | {"n": random.randint(0, TRIPS * BLOCK), "x": next(whole), "y": next(whole)}, {}
    if rule.name == "overlaid":
        whole = np.stack([generator.integers(0, 9, TRIPS * BLOCK)] * TRIPS)
        extent = random.randint(1, TRIPS * BLOCK)
        return bound | {"k": random.randint(0, TRIPS * BLOCK - extent), "x": whole[:, :extent] + 9, "y": whole}, {}
    if rule.name == "bordered":
        bound |= {"u": -7, "x": np.stack([generator.integers(0, 9, TRIPS * BLOCK)] * TRIPS)}
    if rule.name == "owned":
        whole = np.stack([generator.integers(0, 9, TRIPS * BLOCK)] * TRIPS)
        bound |= {"n": random.randint(1, TRIPS * BLOCK), "u": 0, "x": masked(("windows", "a", ("surround", 0, whole)))}
    bound["y"] = generator.integers(0, 9, (TRIPS, COUNT))
    return bound, {}


def masked(term: object) -> Any:
    if not isinstance(term, tuple):
        return term
    head, *args = cast("tuple[str, *tuple[object, ...]]", term)
    return _placed(head, [masked(argument) for argument in args])


# Long: the meaning of every term of the mask laws.
def _placed(head: str, args: list[Any]) -> Any:
    match head, args:
        case "build", [_, _, x]:
            return np.stack([x.reshape(-1)] * TRIPS)
        case "deal", [_, x]:
            return np.stack([x.T.reshape(-1)] * TRIPS)
        case "turn", [_, x]:
            return np.stack([x[..., 0], x[..., 1] * TRIPS + COORDINATE], -1)
        case "order", [x]:
            return np.take_along_axis(x, np.argsort(x[..., 1:], axis=1), axis=1)
        case "slice", [_, m, x]:
            return np.take_along_axis(x, COORDINATE * int(m) + np.arange(int(m)), axis=1)
        case "offset", [_, m]:
            return COORDINATE * m
        case "shift", [_, m, k]:
            return k - COORDINATE * m
        case "mine", [_, m, k]:
            return (k >= COORDINATE * m) & (k < (COORDINATE + 1) * m)
        case "first", [_]:
            return COORDINATE == 0
        case "sum", [_, x]:
            return np.stack([x.sum(axis=0)] * TRIPS)
        case "part", [n, x]:
            return x[:, :n]
        case "extend", [u, x]:
            return np.concatenate([x, np.full((TRIPS, TRIPS * BLOCK - x.shape[1]), u)], axis=1)
        case "chain", [n, x, y]:
            return np.concatenate([x[:, :n], y[:, : x.shape[1] - n]], axis=1)
        case "after", [n, y]:
            # Behind its end may be anything.
            return np.pad(y, ((0, 0), (n, TRIPS * BLOCK)))[:, : TRIPS * BLOCK]
        case "behind", [_, m, n]:
            return COORDINATE * m + np.arange(int(m)) >= n
        case "over", [k, x, y]:
            return np.concatenate([y[:, :k], x, y[:, k + x.shape[1] :]], axis=1)
        case "among", [_, m, k, x]:
            rows = COORDINATE * m + np.arange(int(m)) - k
            return (rows >= 0) & (rows < x.shape[1])
        case "select", [c, x, y]:
            return cast(Array, np.where(c, x, y))
        case "from", [_, k]:
            return COORDINATE * BLOCK + k[:, :1] + np.arange(BLOCK)
        case "held", [_, k]:
            return COORDINATE * BLOCK - 1 + k + np.arange(BLOCK)
        case "local", [_, k]:
            return k[:, :1] + 1
        case "read", [x]:
            return x.cumsum(axis=1)
        case "surround", [u, x]:
            return np.pad(x, ((0, 0), (1, 1)), constant_values=u)
        case "windows", [_, x]:
            return np.take_along_axis(x, COORDINATE * BLOCK + np.arange(BLOCK + 2), axis=1)
        case "inside", [_, x]:
            rows = COORDINATE * BLOCK + np.arange(BLOCK + 2) - 1
            return (rows >= 0) & (rows < x.shape[1])
        case "cover", [_, x]:
            # Of the windows, each has one row before its block and one after it.
            return np.stack([x[:, 1:-1].reshape(-1)] * TRIPS)
        case "own", [_, n]:
            rows = COORDINATE * BLOCK + np.arange(BLOCK + 2) - 1
            return (rows >= 0) & (rows < n) & ((np.arange(BLOCK + 2) < BLOCK) | (COORDINATE == TRIPS - 1))
        case "fold", [_, x]:
            return x.sum(axis=1, keepdims=True)
        case "within", [_, m, n]:
            return COORDINATE * m + np.arange(int(m)) < n
        case "fill", [c, u, x]:
            return cast(Array, np.where(c, x, u))
        case "mask", [c, x]:
            return np.where(c, x, 0)
        case "iota", [n]:
            return np.tile(np.arange(int(n)), (TRIPS, 1))
        case "add", [x, y]:
            return x + (y if x.ndim == y.ndim else np.stack([0 * y, y], -1))
        case "best", [_, x]:
            return _best(x if x.ndim == 3 else np.stack([x, np.tile(np.arange(int(x.shape[1])), (TRIPS, 1))], -1))
        case "gather", [_, x]:
            return np.stack([x.reshape(-1, 2)] * TRIPS)
        case "take", [k, x]:
            # A row of another iteration is read as any row, and masked.
            return np.take_along_axis(x, k % x.shape[1], axis=1)
        case "find", [k, x]:
            inside = (k >= 0) & (k < x.shape[1])
            return np.where(inside, np.take_along_axis(x, np.where(inside, k, 0), axis=1), 0)
        case "put", [n, k, x]:
            return _put(n, k, x)
        case "scan", [_, x]:
            return x.cumsum(axis=1)
        case "across", [_, x]:
            ends = x[:, -1].cumsum()
            whole = [x[trip] + (ends[trip - 1] if trip else 0) for trip in range(TRIPS)]
            return np.stack([np.concatenate(whole)] * TRIPS)
        case "sort", [_, x]:
            return np.sort(x, axis=1)
        case "merge", [_, _, x]:
            return np.stack([np.sort(x.reshape(-1))] * TRIPS)
        case "join", [n, k, x]:
            # A row outside the block must be zero, and is added anywhere.
            return _put(n, k % n, x)
        case _:
            raise AssertionError(head)


def _put(extent: int, k: Array, x: Array) -> Array:
    """Each iteration adds its rows; a row outside the array is dropped."""
    result = np.zeros((TRIPS, extent), int)
    for trip in range(TRIPS):
        inside = (k[trip] >= 0) & (k[trip] < extent)
        np.add.at(result[trip], k[trip][inside], x[trip][inside])
    return result


def _best(lists: Array) -> Array:
    """The two best of (element, position), the first of equal ones first."""
    order = np.argsort(-lists[..., 0], axis=1, stable=True)[:, :2, None]
    return np.take_along_axis(lists, order, axis=1)
