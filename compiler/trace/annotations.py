"""Reads what a program says about layouts: constraints, shardings of arguments and calls, metadata of models.

    with_sharding_constraint(h, NamedSharding(mesh, P("data", None)))   -->   h: Said((("data",), ()), axes=("data", "model"))
    a Partitioned box of ("embed", "mlp") around the argument w         -->   w: Said((("embed",), ("mlp",)))

The tactic `pt.Annotated()` makes claims of them. What cannot be one is kept with the reason, so that a plan can list it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from jax.sharding import NamedSharding, PartitionSpec
from xdsl.ir import SSAValue

from ..jax_private import tree
from ..ops.constrain import AxesOfDims


@dataclass(frozen=True, slots=True)
class Said:
    """A layout that the program gives a value: for each dim its axes. `by` is the construct that gives it.

    `axes` are those of the annotation's own mesh, if no dim is left open: the value is replicated along those that it does not
    name. With a `problem`, it cannot become a claim.
    """

    dims: AxesOfDims = ()
    axes: tuple[str, ...] = ()
    by: str = ""
    problem: str = ""

    def __str__(self) -> str:
        return "?" if self.problem else ", ".join("_" if dim is None else "*".join(dim) or "whole" for dim in self.dims)

    @property
    def says_nothing(self) -> bool:
        """Whether every layout satisfies it."""
        return not self.problem and (not self.dims or (not self.axes and all(dim is None for dim in self.dims)))

    def of_argument(self) -> Self:
        """Opens the dims that no axis tiles, as for an argument, so that a tactic can still tile them."""
        return replace(self, dims=tuple(dim or None for dim in self.dims), axes=())


Annotation = tuple[SSAValue, Said]
"""A value of the program, with what the program says about it."""


def said_by_sharding(sharding: object, rank: int, by: str, unconstrained: Sequence[int] = ()) -> Said | None:
    """Reads a sharding of an array of this rank; None if it says nothing, as JAX's `UnspecifiedValue`."""
    if isinstance(sharding, NamedSharding):
        spec, kind = sharding.spec, sharding.memory_kind
        dims = tuple(None if dim in unconstrained else _axes(spec[dim] if dim < len(spec) else None) for dim in range(rank))
        closed = () if None in dims else tuple(map(str, sharding.mesh.axis_names))
        problem = f"no plan places values in the memory `{kind}`" if kind not in (None, "device", "unpinned_host") else ""
        return Said(dims, closed, by, problem)
    if hasattr(sharding, "device_set"):
        return Said(by=by, problem=f"a {type(sharding).__name__} names no mesh axes: use a NamedSharding")
    return None


def _axes(entry: object) -> tuple[str, ...] | None:
    """The axes of one entry of a `PartitionSpec`; None if the entry is unconstrained."""
    if entry is PartitionSpec.UNCONSTRAINED:
        return None
    if entry is None:
        return ()
    return tuple(map(str, cast("Sequence[object]", entry))) if isinstance(entry, tuple | list) else (str(entry),)


def of_arguments(leaves: Sequence[object], arguments: Mapping[str, object]) -> dict[int, Said]:
    """The annotations of arguments, by the number of the leaf: the sharding of a committed array, or a model's metadata.

    A dim that no axis tiles is left open: an argument that is replicated can still be tiled by a tactic.
    """
    found = {number: said for number, leaf in enumerate(leaves) if (said := _of_leaf(leaf)) is not None}
    found |= dict(_boxed(arguments))
    return {number: said for number, said in found.items() if not said.says_nothing}


def _of_leaf(leaf: object) -> Said | None:
    sharding: object = getattr(leaf, "sharding", None)
    if not isinstance(sharding, NamedSharding) or not getattr(leaf, "committed", True):
        return None
    said = said_by_sharding(sharding, len(cast(Any, leaf).shape), "its sharding")
    return None if said is None else said.of_argument()


def _boxed(arguments: Mapping[str, object]) -> Iterator[tuple[int, Said]]:
    """Yields the leaves in boxes that name their dims, such as `linen.Partitioned` and `nnx` variables, with their numbers."""
    number = 0
    for each in tree.tree_leaves(tuple(arguments.values()), is_leaf=_is_box):
        names, inside = _names(each), tree.tree_leaves(each)
        if names is not None and len(inside) == 1:
            yield number, Said(tuple(None if name is None else _axes(name) for name in names), (), type(each).__name__)
        number += len(inside)


def _is_box(each: object) -> bool:
    return _names(each) is not None


def _names(box: object) -> Sequence[object] | None:
    """The names of the dims of the array in a box; None for anything that is not a box."""
    kind = type(box)
    if not hasattr(kind, "get_metadata") and not hasattr(kind, "get_partition_spec"):
        return None
    metadata = cast("dict[str, object]", cast(Any, box).get_metadata()) if hasattr(kind, "get_metadata") else {}
    found = [metadata.get(key) for key in ("out_sharding", "sharding_names", "sharding")]
    names = next((each for each in found if each), getattr(box, "names", None))
    return cast("Sequence[object]", names) if isinstance(names, tuple | list | PartitionSpec) else None
