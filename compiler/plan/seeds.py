"""The claims that a tactic asks for, before they are checked: a dim of a value, on a place of the mesh."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from math import prod

from ...dialects.mesh import Mesh
from ...dialects.ranges.algebra import Place
from ...rewrites.program.program import ValueId


@dataclass(frozen=True, slots=True)
class Seed:
    """A claim to make: a dim of a value on an axis. Dim None claims the value as replicated along the axis."""

    value: ValueId
    dim: int | None
    axis: str
    name: str
    multiple: int = 0
    """The number of blocks that the tactic makes of the dim over all of its axes; 0 if it has one axis."""
    among: tuple[str, ...] = ()
    """All axes that the tactic places on the dim, if there are several."""
    is_batch: bool = False
    """Whether the dim is the batch, so that the last examples can be dropped if it does not divide."""
    padded: bool = False
    """Whether the dim may be padded if the axis does not divide it."""
    block: int | None = None
    """The length of the blocks that are dealt to the devices in turn; None for one block a device."""
    stored: bool = False
    """Whether the claim is only for storage: the value leaves the dim that propagation gave it, and is redistributed for use.
    """

    of: tuple[ValueId, ...] = ()
    """The parameters for whose sake the value is claimed. A tactic that is restricted to these claims the value too."""
    said: bool = False
    """Whether the program itself makes the claim. A computed value then has one block on each device."""
    at_uses: bool = False
    """Whether the claim is on what reads the value: it stays whole itself, and what makes it is left alone."""

    def parts(self, mesh: Mesh) -> list["SeedOn"]:
        """The claims on the sub-axes of this claim's axis, major to minor, if the mesh splits it; else this claim."""
        seeds = self.over(mesh.parts(self.axis), mesh)
        given = ({each.name: getattr(seed, each.name) for each in fields(Seed)} for seed in seeds)
        return [SeedOn(**each, place=mesh.place(seed.axis)) for each, seed in zip(given, seeds, strict=True)]

    def over(self, axes: Sequence[str], mesh: Mesh) -> Sequence["Seed"]:
        """Replaces this claim by claims on several axes, major to minor, which together tile the dim over all of them."""
        if list(axes) == [self.axis]:
            return [self]
        sizes = [mesh[axis] for axis in axes]
        multiple = self.multiple or (prod(sizes) if len(axes) > 1 else 0)
        minor = [prod(sizes[number + 1 :]) for number in range(len(axes))]
        blocks = [self.block and self.block * size for size in minor]
        seed = replace(self, multiple=multiple, among=tuple(axes))
        return [replace(seed, axis=axis, block=block) for axis, block in zip(axes, blocks, strict=True)]


@dataclass(frozen=True, slots=True)
class SeedOn(Seed):
    """A claim to make, on a place of the plan's mesh."""

    place: Place = field(kw_only=True)

    @property
    def blocks(self) -> int:
        """The number of blocks that the tactic makes of the dim, over one axis or several."""
        return self.multiple or self.place.size

    @property
    def pads(self) -> int:
        """The dim may be padded to a multiple of this number; 0 if it may not be padded."""
        return self.blocks if self.padded else 0
