"""The arrays of one device, and the steps that read and compute them.

%h = dot %x %w; %r = all_reduce %h; %y = tanh %r
    -->   Step(CALL, reads [x, w], makes [h]); Step(CALL, reads [h], makes [r]); Step(MAP, reads [r], makes [y])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...rewrites.program.program import ValueId
from .kinds import Kind, Traits


@dataclass(slots=True, eq=False)
class LocalArray:
    """One array of one device: a value in its own layout, or in another layout for a use.

    `value` is the number of the value. `form` says which form of the value it is, such as `all_gather` or `transposed`; "" for
    the value in its own layout. `given` arrays are in a buffer of the caller: an argument, or what a loop's body reads from
    outside.
    """

    bytes: int
    value: ValueId
    form: str = ""
    given: bool = False
    same_as: LocalArray | None = None
    is_result: bool = False
    recomputed: bool = False
    """Whether its uses compute it again, as far as they can."""
    stored: bool = True

    @property
    def origin(self) -> LocalArray:
        """The array whose bytes these are, behind reshapes and the like."""
        found = self
        while found.same_as is not None:
            found = found.same_as
        return found


@dataclass(slots=True, eq=False)
class MemoryStep:
    """A unit that XLA runs: an op, a part of a redistribution, a loop. `node` is the op's number; -1 for a move."""

    traits: Traits
    name: str
    reads: Sequence[LocalArray]
    makes: Sequence[LocalArray]
    node: int = -1
    bodies: Sequence[RegionSteps] = ()
    inside_fold: bool = False
    """Whether it runs together with the fold that reads its result."""

    @property
    def kind(self) -> Kind:
        return self.traits.kind

    @property
    def is_stored(self) -> bool:
        """Whether any result is stored; otherwise the step only runs inside its uses."""
        for each in self.makes:
            if each.stored:
                return True
        return bool(self.bodies) or not self.makes


@dataclass(slots=True, eq=False)
class RegionSteps:
    """The program, or one region of a loop or a `cond`.

    A loop's carries, which each trip replaces, are given and take part in the body's memory. `region` is its number in the
    program. `makers` has the step that computes each array, in all bodies of a program: if an array referred to its step, only
    the cyclic collector would free it.
    """

    steps: list[MemoryStep]
    given: list[LocalArray]
    results: list[LocalArray]
    makers: Mapping[LocalArray, MemoryStep]
    carries: list[LocalArray] = field(default_factory=list[LocalArray])
    is_loop: bool = False
    region: int = 0
