"""The type of every value: an element type, a layout and a device set, and the attribute that names mesh axes."""

import re
from functools import cached_property, lru_cache
from math import prod

from xdsl.ir import TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser

from .ground.dtypes import itemsize
from .ground.errors import Error
from .layouts import Layout, parse_array
from .mesh import axis_of
from .program_text import TextAttr, meshes, take_match
from .ranges.algebra import Extent, Place

# A dim may contain a sub-range, `512[0 : 256 : 1]`, with plain numbers as bounds: brackets nest at most twice.
# Pending reductions follow without a blank, so a `{` after a blank is always something else.
_ARRAY = re.compile(r"(\w+\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\{[^{}]*\})?)(?: on ([\w.:]+))?")
_AXES = re.compile(r"\(\s*[\w.:@]+(?:\s*,\s*[\w.:@]+)*\s*\)")


# By element type, layout and device set. Types are never freed, like layouts.
_made: dict[tuple[str, Layout, str], "ArrayType"] = {}


@irdl_attr_definition
class ArrayType(TextAttr[tuple[str, Layout, str]], TypeAttribute):
    """An array of `dtype` (a NumPy name) with a `layout`: `!array.array<f32[data*128, 256]{+model}>`.

    In a program on several device sets it also says on which set the array is: `f32[data*128, 256] on left`, where `data` is
    the axis `data@left`. Two types are equal exactly if they are the same object, however they were made.
    """

    name = "array.array"

    def __new__(cls, data: tuple[str, Layout, str]) -> "ArrayType":
        # Interned here and not only in `of`, because xDSL's parser calls the class.
        return _made.get(data) or _made.setdefault(data, object.__new__(cls))

    @staticmethod
    def of(dtype: str, layout: Layout, on: str = "") -> "ArrayType":
        key = (dtype, layout, on)
        return _made.get(key) or ArrayType(key)

    @staticmethod
    @lru_cache(maxsize=1 << 14)
    def whole(dtype: str, shape: tuple[int, ...] = ()) -> "ArrayType":
        """An array without placed dims: a global value as the user wrote it, or the local array of one device."""
        return ArrayType.of(dtype, Layout(tuple(map(Extent, shape))))

    @classmethod
    def new(cls, params: tuple[str, Layout, str]) -> "ArrayType":
        return cls.of(*params)

    @cached_property
    def dtype(self) -> str:
        return self.data[0]

    @cached_property
    def layout(self) -> Layout:
        return self.data[1]

    @cached_property
    def on(self) -> str:
        """The name of the device set; empty in a program with one set."""
        return self.data[2]

    @cached_property
    def is_whole(self) -> bool:
        """Whether the type is a plain shape: nothing is placed, padded or pending."""
        return not self.layout.pending and all(isinstance(dim, Extent) for dim in self.layout.dims)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The extents of a plain type; for other types use `local_shape` or `global_shape` of the layout."""
        if not self.is_whole:
            raise Error(f"`{self.text}` has no plain shape", label="part of it is placed or pending")
        return tuple(dim.n for dim in self.layout.dims if isinstance(dim, Extent))

    @cached_property
    def nbytes(self) -> int:
        """The bytes of an array of a plain type."""
        return prod(self.shape) * itemsize(self.dtype)

    @cached_property
    def text(self) -> str:
        text = self.layout.text(self.dtype)
        return f"{text.replace(f'@{self.on}', '')} on {self.on}" if self.on else text

    @cached_property
    def local(self) -> "ArrayType":
        """The local type on one device: `f32[data*128, 256]{+model} --> f32[128, 256]`."""
        return ArrayType.whole(self.dtype, self.layout.local_shape)

    @classmethod
    def read(cls, parser: AttrParser) -> "ArrayType":
        def array(found: re.Match[str]) -> ArrayType:
            on = found[2] or ""
            sets = [mesh for mesh in meshes(parser) if mesh.devices == on] if on else meshes(parser)
            return ArrayType.of(*parse_array(found[1], *sets), on)

        return take_match(parser, _ARRAY, "an array type, like `f32[data*128, 256]`", array)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


@irdl_attr_definition
class AxesAttr(TextAttr[tuple[Place, ...]]):
    """Mesh axes, major to minor: `(data, model)`.

    A factor of an axis is written `data.0:2`, as in a layout, or by its name `data.0` if the mesh is refined.
    """

    name = "array.axes"

    @cached_property
    def text(self) -> str:
        return f"({', '.join(self.names)})"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The texts of the axes: `("data", "model")`."""
        return tuple(map(str, self.data))

    @cached_property
    def size(self) -> int:
        """The number of devices along all of the axes."""
        return prod(axis.size for axis in self.data)

    @classmethod
    def read(cls, parser: AttrParser) -> "AxesAttr":
        def axes(found: re.Match[str]) -> AxesAttr:
            return AxesAttr(tuple(axis_of(axis.strip(), *meshes(parser), split=True) for axis in found[0][1:-1].split(",")))

        return take_match(parser, _AXES, "mesh axes, like `(data, model)`", axes)
