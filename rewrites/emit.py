"""Emits small local ops: numbers, casts, comparisons and selects on local arrays.

select %x where %i < 4   -->   %n = lax.constant {value = 4}; %c = lax.lt %i, ...; %y = lax.select_n %c, %zero, %x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects.definitions.front_ends.gather import CLAMPS, FIELDS, GATHER, DimensionNumbers
from ..dialects.ground.dtypes import dtype_of, itemsize
from ..dialects.ground.monoids import UNITS
from ..dialects.lax import OPS
from ..dialects.params import NO_PARAMS, Literal, ParamsAttr, Record, literal
from ..dialects.types import ArrayType

Shape = tuple[int, ...]
"""The extents of an array, or its dims."""

IDS = "int32"
"""The dtype of coordinates, offsets and ids."""
WIDE = ("int64", "uint32", "uint64")
"""Integer dtypes whose ids may not fit into i32."""

COMPARES = ("eq", "ne", "lt", "ge")
"""Elementwise ops with a condition as their result."""

EXACT = ("bool", "int", "uint")
"""Prefixes of the names of dtypes that have only one zero."""


_AS_OP = {"pick": "add"}
"""Monoids -> the op that folds two arrays, if it has another name."""
_ON_BOOL = {"max": "or", "min": "and", "pick": "or"}
"""The same for booleans."""


def type_at(value: SSAValue) -> ArrayType:
    """The array type of a local value."""
    return cast(ArrayType, value.type)


def again(op: Operation, operands: Sequence[SSAValue], types: Sequence[Attribute]) -> Operation:
    """The same op on other operands, with results of these types."""
    return type(op).create(operands=operands, result_types=types, properties=op.properties)


class Sink(Protocol):
    """Where new ops go: a constructor, or a block."""

    def append(self, op: Operation, /) -> None: ...


class Appending:
    """A sink that appends ops to a block."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def append(self, op: Operation) -> None:
        self.block.add_op(op)


class Emitter:
    """Builds ops, appends them to a sink, and returns their results."""

    def __init__(self, into: Sink) -> None:
        self.into = into

    def make(self, kind: str, ins: Sequence[SSAValue], dtype: str, shape: Shape, /, **params: Literal) -> SSAValue:
        op = OPS[kind].of(ins, [ArrayType.whole(dtype, shape)], ParamsAttr.of(**params) if params else NO_PARAMS)
        self.into.append(op)
        return op.results[0]

    def apply(self, kind: str, *operands: SSAValue | int) -> SSAValue:
        """An elementwise op. Numbers have the dtype of the last array, and arrays of rank 0 meet each element of the others."""
        types = [type_at(each) for each in operands if not isinstance(each, int)]
        dtype, shape = types[-1].dtype, max((each.shape for each in types), key=len)
        ins = [self.spread(self.number(each, dtype) if isinstance(each, int) else each, shape) for each in operands]
        return self.make(kind, ins, "bool" if kind in COMPARES else dtype, shape)

    def folded(self, monoid: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """The fold of two arrays."""
        if monoid != "logaddexp":
            return self.apply(_ON_BOOL.get(monoid, monoid) if type_at(x).dtype == "bool" else _AS_OP.get(monoid, monoid), x, y)
        # max(x, y) + log1p(exp(-|x - y|)); for two equal infinities their sum.
        apply = self.apply
        largest, gap = apply("max", x, y), apply("sub", x, y)
        rest = apply("log1p", apply("exp", apply("neg", apply("abs", gap))))
        return apply("select_n", apply("ne", gap, gap), apply("add", largest, rest), apply("add", x, y))

    def number(self, value: int, dtype: str) -> SSAValue:
        plain: Literal = value
        if dtype == "bool":
            plain = bool(value)
        elif not dtype.startswith(EXACT):
            plain = float(value)
        return self.make("constant", (), dtype, (), value=plain)

    def unit(self, monoid: str, dtype: str) -> SSAValue:
        """A constant: the unit of a monoid, which changes none of its folds."""
        unit = UNITS[monoid](dtype_of(dtype))
        if unit != unit and set(unit.tobytes()) == {255}:
            # The text of a constant has one NaN, and this one has all bits.
            return self.bitcast(self.number((1 << 8 * itemsize(dtype)) - 1, f"uint{8 * itemsize(dtype)}"), dtype)
        return self.make("constant", (), dtype, (), value=literal(unit[()]))

    def zero(self, dtype: str) -> SSAValue:
        """A constant zero; for floats -0.0, because adding it keeps the sign of a zero."""
        return self.unit("pick", dtype)

    def cast(self, value: SSAValue, dtype: str) -> SSAValue:
        if type_at(value).dtype == dtype:
            return value
        to = Record("dtype", (("name", dtype),))
        return self.make("convert_element_type", (value,), dtype, type_at(value).shape, new_dtype=to, weak_type=False)

    def bitcast(self, value: SSAValue, dtype: str) -> SSAValue:
        to = Record("dtype", (("name", dtype),))
        return self.make("bitcast_convert_type", (value,), dtype, type_at(value).shape, new_dtype=to)

    def ordered(self, arrays: Sequence[SSAValue], dim: int) -> Sequence[SSAValue]:
        """Sorts arrays along a dim, by the elements of the first of them."""
        params = ParamsAttr.of(dimension=dim, is_stable=True, num_keys=1)
        op = OPS["sort"].of(arrays, list(map(type_at, arrays)), params)
        self.into.append(op)
        return op.results

    def take(self, x: SSAValue, at: SSAValue, dim: int) -> SSAValue:
        """Takes elements at given positions along one dim; all other dims are shared, as in `take_along_axis`."""
        shape = type_at(at).shape
        others = tuple(each for each in range(len(shape)) if each != dim)
        numbers = DimensionNumbers((), (dim,), (dim,), others, others)
        return self.gather(x, self.reshape(self.narrow(at), (*shape, 1)), shape, numbers)

    def take_rows(self, x: SSAValue, at: SSAValue, dim: int) -> SSAValue:
        """Takes the rows at the positions `at`, a vector, along a dim."""
        type, (count,) = type_at(x), type_at(at).shape
        others = tuple(each for each in range(len(type.shape)) if each != dim)
        numbers = DimensionNumbers(others, (dim,), (dim,), (), ())
        shape = (*type.shape[:dim], count, *type.shape[dim + 1 :])
        return self.gather(x, self.reshape(at, (count, 1)), shape, numbers)

    def gather(self, x: SSAValue, ids: SSAValue, shape: Shape, numbers: DimensionNumbers) -> SSAValue:
        """A gather whose ids are all within bounds."""
        inside = {"mode": CLAMPS, "fill_value": None, "indices_are_sorted": False, "unique_indices": False}
        said = Record(GATHER, tuple(zip(FIELDS[GATHER], numbers, strict=True)))
        return self.make("gather", (x, ids), type_at(x).dtype, shape, dimension_numbers=said, **inside)

    def narrow(self, ids: SSAValue) -> SSAValue:
        """Casts ids to i32. Ids outside of every array stay outside."""
        if (dtype := type_at(ids).dtype) in WIDE:
            low, high = (self.number(each, dtype) for each in (-1 if dtype == "int64" else 0, (1 << 31) - 1))
            ids = self.make("clamp", (low, ids, high), dtype, type_at(ids).shape)
        return self.cast(ids, IDS)

    def spread(self, value: SSAValue, shape: Shape, dims: Shape = ()) -> SSAValue:
        """Broadcasts the value to a larger shape, in which its dims are `dims`."""
        type = type_at(value)
        if type.shape == shape and dims == tuple(range(len(dims))):
            return value
        return self.make("broadcast_in_dim", (value,), type.dtype, shape, broadcast_dimensions=dims)

    def iota(self, shape: Shape, dim: int) -> SSAValue:
        return self.make("iota", (), IDS, shape, dtype=Record("dtype", (("name", IDS),)), dimension=dim)

    def transpose(self, x: SSAValue, order: Sequence[int]) -> SSAValue:
        """The array with its dims in this order."""
        if list(order) == sorted(order):
            return x
        type = type_at(x)
        return self.make("transpose", (x,), type.dtype, tuple(type.shape[at] for at in order), permutation=tuple(order))

    def concatenate(self, parts: Sequence[SSAValue], dim: int) -> SSAValue:
        type, length = type_at(parts[0]), sum(type_at(part).shape[dim] for part in parts)
        shape = (*type.shape[:dim], length, *type.shape[dim + 1 :])
        return parts[0] if len(parts) == 1 else self.make("concatenate", parts, type.dtype, shape, dimension=dim)

    def cut(self, x: SSAValue, shape: Shape, first: Sequence[int] = ()) -> SSAValue:
        """An array of this shape, of the elements from the first ones on, or from `first` on."""
        starts = tuple(first) or (0,) * len(shape)
        return self.make("slice", (x,), type_at(x).dtype, shape, start_indices=starts, strides=None)

    def part(self, x: SSAValue, dim: int, first: int, size: int = 1) -> SSAValue:
        """Some of the rows of an array along a dim."""
        shape = type_at(x).shape
        return self.cut(x, (*shape[:dim], size, *shape[dim + 1 :]), [first if at == dim else 0 for at in range(len(shape))])

    def pad(self, x: SSAValue, shape: Shape) -> SSAValue:
        """An array of this shape, with zeros behind the elements of each dim."""
        type = type_at(x)
        config = tuple((0, new - old, 0) for old, new in zip(type.shape, shape, strict=True))
        return self.make("pad", (x, self.zero(type.dtype)), type.dtype, shape, padding_config=config)

    def reshape(self, value: SSAValue, shape: Shape) -> SSAValue:
        type = type_at(value)
        return value if type.shape == shape else self.make("reshape", (value,), type.dtype, shape)

    def select(self, keep: SSAValue, value: SSAValue, other: int | SSAValue | None = None) -> SSAValue:
        """The value where `keep` is true, elsewhere another value or number, by default zero."""
        type = type_at(value)
        if not isinstance(other, SSAValue):
            other = self.zero(type.dtype) if other is None else self.number(other, type.dtype)
        # A condition of rank 0 selects all of an array.
        return self.make("select_n", (keep, self.spread(other, type.shape), value), type.dtype, type.shape)

    def both(self, one: SSAValue, other: SSAValue, kind: str = "and") -> SSAValue:
        """Combines two conditions elementwise, with `and` by default."""
        return self.apply(kind, one, other)

    def between(self, ids: SSAValue, extent: int | SSAValue) -> SSAValue:
        """The mask `0 <= ids < extent`."""
        end = self.number(extent, IDS) if isinstance(extent, int) else extent
        return self.both(self.apply("ge", ids, 0), self.apply("lt", ids, end))

    def rows(self, shape: Shape, dim: int, first: SSAValue, step: int = 1) -> SSAValue:
        """The positions, along a dim of the global array, of the elements of a local array whose first position is `first`."""
        rows = self.iota(shape, dim)
        if step != 1:
            rows = self.apply("mul", rows, step)
        return self.apply("add", rows, first)

    def inside(self, value: SSAValue, dim: int, first: SSAValue, extent: int, other: SSAValue) -> SSAValue:
        """The value where its positions along a dim lie within the global extent, elsewhere `other`."""
        return self.select(self.between(self.rows(type_at(value).shape, dim, first), extent), value, other)

    def equals(self, ids: SSAValue, number: int) -> SSAValue:
        return self.apply("eq", ids, number)
