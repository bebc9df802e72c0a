"""What all tactics share: a tactic makes all its claims at once and propagates once, so the order within it never matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import ClassVar, cast

from ....dialects.errors import Error
from ....dialects.given import check_of, checked, taken
from ...inputs.checks import block_of, flag_of, patterns_of
from ...inputs.names import Patterns
from ...plan.claims import Seed, having
from ..plan import Plan
from .combinators import Composable

Axes = str | Sequence[str]
Dims = Patterns | Mapping[str, int]


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
    """The tactics by name; of two classes with the same name, the one defined last."""

    def __init_subclass__(cls) -> None:
        Tactic.known[cls.__name__] = cls
        if "__call__" in vars(cls):
            cls.__call__ = checked(cls.__call__)

    def __post_init__(self) -> None:
        """Raises Error for a field of a wrong kind. A tactic of a user says itself what its fields take."""
        for each in fields(self) if type(self).__module__.startswith(_LIBRARY) else ():  # pyright: ignore
            if (check := check_of(each.name, str(each.type))) is not None:
                object.__setattr__(self, each.name, taken(each.name, check, getattr(self, each.name)))

    holds: ClassVar[bool] = False
    """Whether its claims propagate only along their ranges, and no later tactic propagates them further."""

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        raise Error(f"`{type(self).__name__}` makes no claims of its own", helps=["apply it to a plan: plan.apply(tactic)"])

    @checked
    def __call__(self, plan: Plan) -> Plan:
        plan = self.split(plan)
        return plan.place(list(self.seeds(plan)), repr(self), held=self.holds)

    @checked
    def split(self, plan: Plan) -> Plan:
        """The plan on a mesh that has the sub-axes which the field `axis` names."""
        given: object = getattr(self, "axis", ())
        axes = cast("Sequence[object]", given if isinstance(given, tuple | list) else (given,))
        return having(plan, [axis for axis in axes if isinstance(axis, str)])

    def __repr__(self) -> str:
        given = ((each.name, getattr(self, each.name), each.default) for each in fields(self))  # pyright: ignore
        shown = [f"{name}={value!r}" for name, value, default in given if value != default]
        return f"{type(self).__name__}({', '.join(shown)})"


def tiles(plan: Plan, dims: Dims, default: int, axis: str, padded: bool, block: int | None = None) -> Iterator[Seed]:
    """A seed for each value that a pattern matches, on the dim from the mapping, or on the default dim."""
    table = dims if isinstance(dims, Mapping) else dict.fromkeys(patterns_of(dims), default)
    for pattern, dim in table.items():
        for name, value in plan.source.addresses.find(pattern).items():
            at, pads = plan.dim_of(value, dim, name), flag_of("padded", padded)
            yield Seed(value, at, axis, name, padded=pads, block=block_of(block, pads))
