"""What all tactics share: a tactic makes all its claims at once and propagates once, so the order within it never matters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, Field, dataclass, fields, replace
from typing import ClassVar, Self, cast

from ....dialects.ground.errors import Error
from ....dialects.ground.validation import accepted, check_of, checked
from ....rewrites.program.program import ValueId
from ...inputs.checks import Axes, axes_of, block_of, checked_axis, flag_of, patterns_of
from ...inputs.names import Patterns, as_patterns
from ...inputs.tactic_calls import no_argument
from ...plan.claims import having, wanted
from ...plan.seeds import Seed
from ...plan.state import State
from ..plan import Plan
from .combinators import Composable

DimsByName = Patterns | Mapping[str, int]


_LIBRARY = __name__.rpartition(".")[0]
"""The folder of the library's tactics."""


class Tactic(Composable):
    """Base class of tactics that can be replayed. `seeds` yields the claims to make; the text is the constructor call.

    A subclass is a frozen dataclass with literal fields. It registers itself, so that `pt.replay` can read its constructor
    call.

        @dataclass(frozen=True, repr=False)
        class Rows(pt.Tactic):
            axis: str

            def seeds(self, plan):
                yield from pt.Tile({"x": 0}, self.axis).seeds(plan)

        plan.apply(Rows("data")).trace   -->   Rows(axis='data')
    """

    known: ClassVar[dict[str, type[Tactic]]] = {}
    """The classes of tactics by name. Of two with the same name, the one defined last."""

    def __init_subclass__(cls, *, is_abstract: bool = False) -> None:
        if not is_abstract:
            Tactic.known[cls.__name__] = cls
        super().__init_subclass__()

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Raises Error for a keyword argument that the tactic does not have."""
        del args
        # A copy is made without arguments.
        if kwargs and (problem := no_argument(cls.__name__, kwargs, inspect.signature(cls))) is not None:
            raise problem
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Checks the fields. Raises Error for a value of the wrong kind. A user's own tactic checks its fields itself."""
        for each in fields(self) if type(self).__module__.startswith(_LIBRARY) else ():  # pyright: ignore
            if (check := check_of(each.name, str(each.type), each.default)) is not None:
                object.__setattr__(self, each.name, accepted(each.name, check, getattr(self, each.name)))

    holds: ClassVar[bool] = False
    """Whether its claims propagate only along their ranges, and no later tactic propagates them further."""

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        """Yields the claims of the tactic on this plan."""
        helps = ["a tactic that yields claims has a method `seeds(self, plan)`", "apply this one to a plan: plan.apply(tactic)"]
        raise Error(f"`{type(self).__name__}` makes no claims of its own", helps=helps)

    def __call__(self, plan: Plan) -> Plan:
        return self.placed(plan, self.holds)

    def placed(self, plan: Plan, held: bool) -> Plan:
        """Makes the claims of the tactic. The new plan keeps the tactic, to make them again if an earlier one changes."""
        plan = self.split(plan)
        return plan.place(list(self.seeds(plan)), repr(self), held=held).by(cast("Callable[[State], State]", self))

    @checked
    def split(self, plan: Plan) -> Plan:
        """Splits mesh axes, if the field `axis` names sub-axes: returns the plan on a mesh that has them."""
        given: object = getattr(self, "axis", ())
        axes = cast("Sequence[object]", given if isinstance(given, tuple | list) else (given,))
        return having(plan, [axis for axis in axes if isinstance(axis, str)])

    def __repr__(self) -> str:
        # The options that all strategies have come last.
        own = cast("list[Field[object]]", sorted(fields(self), key=lambda each: each.kw_only))  # pyright: ignore
        given = ((each.name, getattr(self, each.name), each.default) for each in own)
        shown = [f"{name}={value!r}" for name, value, default in given if value != default]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Strategy(Tactic, is_abstract=True):
    """A kind of parallelism. `claims` yields the claims; two options are common to all.

    `values` restricts it to these values, as `pt.at` does: it looks only among them, and claims no others. A parameter also
    stands for the values that are computed from it, where a tactic claims those, and inside of loops for its part there. With
    `padded`, a dim that the axis does not divide is padded.
    """

    _: KW_ONLY
    values: Patterns = ()
    padded: bool = False

    def __call__(self, plan: Plan) -> Plan:
        placed = super().__call__(plan)
        if problem := self.problem(plan, placed):
            raise problem
        return placed

    def problem(self, plan: Plan, placed: Plan) -> Error | None:
        """The error if the claims turn out useless, given the plans before and after; otherwise None."""
        del plan, placed

    def claims(self, plan: Plan) -> Iterator[Seed]:
        """Yields the claims on this plan. The options are applied to them afterwards."""
        return super().seeds(plan)

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        flag_of("padded", self.padded)
        plan = self.restricted(plan)
        for seed in wanted(plan, list(self.claims(plan)), repr(self)):
            yield replace(seed, padded=True) if seed.dim is not None and self.pads(plan, seed) else seed

    def restricted(self, plan: Plan) -> Plan:
        """The plan, with patterns restricted to match only `values`."""
        return replace(plan, source=plan.source.within(self.values)) if as_patterns(self.values) else plan

    def pads(self, plan: Plan, seed: Seed) -> bool:
        """Whether a claim may pad its dim."""
        del plan, seed
        return self.padded


@dataclass(frozen=True, repr=False)
class Structural(Strategy, is_abstract=True):
    """A strategy on one axis, for parameters that its patterns name, or else that it finds from the program's structure."""

    axis: str
    named: ClassVar[Mapping[str, int]] = {}
    """The fields that hold patterns, each with the dim to tile unless a mapping says otherwise."""

    def claims(self, plan: Plan) -> Iterator[Seed]:
        plan.mesh.parts(checked_axis(self.axis))
        given = [(patterns, dim) for name, dim in self.named.items() if (patterns := cast(DimsByName, getattr(self, name)))]
        for patterns, dim in given:
            yield from tiles(plan, patterns, dim, self.axis)
        if not given:
            yield from at_dims(plan, self.found(plan), self.axis)

    def found(self, plan: Plan) -> Iterable[tuple[ValueId, int]]:
        """The parameters that the strategy finds, each with the dim to tile. Raises Error if there are none."""
        raise NotImplementedError


def at_dims(plan: Plan, found: Iterable[tuple[ValueId, int | None]], axis: str) -> Iterator[Seed]:
    """Claims for values on these dims. None for a dim means to replicate."""
    return (Seed(value, dim, axis, plan.source.addresses.name(value)) for value, dim in found)


def tiles(
    plan: Plan, dims: DimsByName, default: int, axis: Axes, padded: bool = False, block: int | None = None
) -> Iterator[Seed]:
    """Claims for each value that a pattern matches, on the dim given by the mapping or by default.

    Several axes are major to minor.
    """
    table, pads = dims if isinstance(dims, Mapping) else dict.fromkeys(patterns_of(dims), default), flag_of("padded", padded)
    for pattern, dim in table.items():
        for name, value in plan.source.addresses.find(pattern).items():
            seed = Seed(value, plan.dim_of(value, dim, name), "", name, padded=pads, block=block_of(block, pads))
            yield from seed.over(axes_of(axis), plan.mesh)
