"""Small programs for the oracle: a few ops, each one node, on a mesh of one or two axes, with tactics; drawn from a seed.

    drawn(SHAPES[0], 7)   -->   six ops on {"a": 2}, always the same

They are only planned, never run, so extents may be large. In half of them bytes decide: extents are small, and ops compute
little. In the other half most ops are products of large matrices, so that flops decide.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from random import Random
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from generated_tactics import Tactic
from jax import lax

import partita as pt
from partita.compiler.api.plan import Plan

Array: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]
LARGEST, LARGEST_RANK = 1 << 28, 3
IDS = "int32"


def dot(x: Array, y: Array, contract: tuple[int, int], batch: tuple[int, int] | None) -> Array:
    batches = ((), ()) if batch is None else ((batch[0],), (batch[1],))
    return lax.dot_general(x, y, (((contract[0],), (contract[1],)), batches))


def spread(x: Array, dim: int, count: int) -> Array:
    shape = (*x.shape[:dim], count, *x.shape[dim:])
    return lax.broadcast_in_dim(x, shape, tuple(each for each in range(len(shape)) if each != dim))


def take(x: Array, ids: Array, dim: int) -> Array:
    """Rows of a dim, by ids of shape [n, 1]: the first dim of the result."""
    offsets = tuple(range(1, x.ndim))
    numbers = lax.GatherDimensionNumbers(offsets, (dim,), (dim,))
    sizes = tuple(1 if each == dim else extent for each, extent in enumerate(x.shape))
    return lax.gather(x, ids, numbers, sizes, mode="clip")


def put(x: Array, ids: Array, rows: Array) -> Array:
    """Adds rows to a table, by ids of shape [n, 1]."""
    numbers = lax.ScatterDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    return lax.scatter_add(x, ids, rows, numbers, mode="drop")


ONE: dict[str, Callable[[Array], Array]] = {"tanh": lax.tanh, "neg": lax.neg, "exp": lax.exp}
TWO: dict[str, Callable[[Array, Array], Array]] = {"add": lax.add, "mul": lax.mul, "sub": lax.sub, "max": lax.max}
ALONG: dict[str, Callable[[Array, int], Array]] = {
    "sum": lambda x, dim: lax.reduce_sum_p.bind(x, axes=(dim,), out_sharding=None),
    "largest": lambda x, dim: lax.reduce_max_p.bind(x, axes=(dim,), out_sharding=None),
    "running": lambda x, dim: lax.cumsum(x, dim),
}
FUNCTIONS: dict[str, Callable[..., Array]] = {
    **ONE,
    **TWO,
    **ALONG,
    "dot": dot,
    "transpose": lax.transpose,
    "spread": spread,
    "take": take,
    "put": put,
}


@dataclass(frozen=True, slots=True)
class Op:
    """One op: its function, the values that it reads, by number, and its other arguments."""

    name: str
    operands: tuple[int, ...]
    params: tuple[Any, ...] = ()

    def run(self, values: Sequence[Array]) -> Array:
        return FUNCTIONS[self.name](*(values[each] for each in self.operands), *self.params)

    def __str__(self) -> str:
        return f"{self.name}({', '.join([*(f'v{each}' for each in self.operands), *map(str, self.params)])})"


@dataclass(frozen=True, slots=True)
class Kind:
    """How many ops a program has, and on which mesh."""

    ops: int
    mesh: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.ops} ops on ({', '.join(str(size) for _, size in self.mesh)})"


KINDS = (Kind(6, (("a", 2),)), Kind(4, (("a", 2), ("b", 2))), Kind(4, (("a", 4), ("b", 2))))


@dataclass(frozen=True)
class Draw:
    """A program of a kind, and tactics in the order in which they are applied. `is_heavy`: its flops are to decide."""

    kind: Kind
    seed: int
    arguments: tuple[tuple[Shape, str], ...]
    ops: tuple[Op, ...]
    tactics: tuple[Tactic, ...]
    is_heavy: bool

    def function(self, *arrays: Array) -> tuple[Array, ...]:
        values = list(arrays)
        for op in self.ops:
            values.append(op.run(values))
        used = {operand for op in self.ops for operand in op.operands}
        return tuple(values[n] for n in range(len(arrays), len(values)) if n not in used)

    @cached_property
    def plan(self) -> Plan:
        args = [jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)) for shape, dtype in self.arguments]
        start = pt.plan(self.function, pt.Mesh(**dict(self.kind.mesh)), *args)
        return start.apply(*(tactic.apply for tactic in self.tactics))

    def __str__(self) -> str:
        given = [f"v{n}: {dtype}[{', '.join(map(str, shape))}]" for n, (shape, dtype) in enumerate(self.arguments)]
        made = [f"v{n} = {op}" for n, op in enumerate(self.ops, len(self.arguments))]
        return "\n".join([f"{self.kind}, seed {self.seed}: {', '.join(given)}", *(f"  {each}" for each in made)])


TACTICS = (
    *["tile"] * 8,
    *["tile inside"] * 2,
    *["replicate", "replicate inside", "held"],
    *["data parallel"] * 3,
    *["zero"] * 2,
    *["megatron"] * 2,
)


def drawn(kind: Kind, seed: int) -> Draw:
    """The program of this kind and seed."""
    random = Random(f"{kind} {seed}")
    heavy = bool(seed % 2)
    pool = [1 << each for each in ((14, 14, random.randint(11, 14)) if heavy else random.choices(range(3, 11), k=3))]
    count, rows = random.choice((2, 3, 3)), random.choice(pool)
    shapes = [tuple(random.choice(pool) for _ in range(random.choice((2, 2, 2, 1, 3)))) for _ in range(count)]
    fitting = [shape for shape in shapes if prod(shape) <= LARGEST] or [(pool[0], pool[1])]
    arguments = [((rows, 1), IDS), *((shape, "float32") for shape in fitting)]
    shapes = [shape for shape, _ in arguments]
    ops: list[Op] = []
    while len(ops) < kind.ops:
        if (op := _next(random, shapes, pool, heavy)) is not None:
            shape = jax.eval_shape(
                op.run, [jax.ShapeDtypeStruct(s, jnp.dtype("float32" if n else IDS)) for n, s in enumerate(shapes)]
            )
            if len(shape.shape) <= LARGEST_RANK and 1 < prod(shape.shape) <= LARGEST:
                ops.append(op)
                shapes.append(shape.shape)
    chosen = [
        Tactic(random.choice(TACTICS), *(random.randrange(1 << 10) for _ in range(3))) for _ in range(random.randint(1, 4))
    ]
    return Draw(kind, seed, tuple(arguments), tuple(ops), tuple(chosen), heavy)


def _next(random: Random, shapes: list[Shape], pool: list[int], heavy: bool) -> Op | None:
    """An op on the values so far, mostly the latest one; None if what was chosen does not fit."""
    values = range(1, len(shapes))
    n = values[-1] if random.random() < 0.6 else random.choice(values)
    x = shapes[n]
    if not x:
        return None
    dim = random.randrange(len(x))
    name = random.choice(
        (*["dot"] * (16 if heavy else 4), "one", "two", "two", "two", "along", "along", "transpose", "spread", "take", "put")
    )
    match name:
        case "dot":
            if not (fits := [*_products(n, shapes)]):
                return None
            m, i, j = random.choice(fits)
            y = shapes[m]
            batches = [(k, h) for k, a in enumerate(x) for h, b in enumerate(y) if a == b and k != i and h != j]
            batch = random.choice(batches) if batches and random.random() < 0.25 else None
            return Op("dot", (n, m), ((i, j), batch))
        case "one":
            return Op(random.choice(sorted(ONE)), (n,))
        case "two":
            m = random.choice([m for m in values if shapes[m] == x])
            return Op(random.choice(sorted(TWO)), (n, m))
        case "along":
            return Op(random.choice(("sum", "sum", "largest", "running")), (n,), (dim,))
        case "transpose":
            order = tuple(random.sample(range(len(x)), len(x)))
            return None if order == tuple(range(len(x))) else Op("transpose", (n,), (order,))
        case "spread":
            return Op("spread", (n,), (dim, random.choice(pool)))
        case "take":
            return Op("take", (n, 0), (dim,))
        case _:
            rows = [m for m in values if shapes[m] == (shapes[0][0], *x[1:])]
            return Op("put", (n, 0, random.choice(rows))) if rows else None


def _products(n: int, shapes: list[Shape]) -> Iterator[tuple[int, int, int]]:
    for m in range(1, len(shapes)):
        yield from (
            (m, i, j) for i, j in product(*map(range, map(len, (shapes[n], shapes[m])))) if shapes[n][i] == shapes[m][j]
        )
