"""A definition to be tried, and the error if it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from jax import Array

from ...dialects.definitions.tree import Definition
from ..inputs.literals import Written
from .kept_together import kept_together
from .samples import Type

Run: TypeAlias = Callable[[Mapping[str, Any], Sequence[Array], Sequence[Type]], Sequence[Array]]
"""(static parameters, operands, types of the results) -> results."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function, and the definition that its author wrote for it."""

    definition: Definition
    written: Written
    run: Run

    @property
    def title(self) -> str:
        return self.definition.title

    def refuse(self, variable: str, notes: Sequence[str], ways: Iterable[str] = (), size: int = 0, larger: int = 0) -> NoReturn:
        """Raises the counter-example, with alternatives. If blocks of `size` are too small, blocks of `larger` agree."""
        bare = variable.rstrip(".")
        helps = [f"write `{variable}:` for {'dims' if bare != variable else 'a dim'} that cannot be partitioned", *ways]
        problem = "cannot be placed"
        if larger:
            problem = f"cannot be cut into blocks of {size}"
            helps.insert(0, kept_together(self.written.text, self.definition, variable, larger))
        title = f"`{self.title}` does not match its definition: `{variable}` {problem}"
        self.written.fail(bare, title, notes=tuple(notes), helps=tuple(helps))


class Unfit(Exception):
    """The function does not take these shapes. With a `variable`, it does not take such blocks, but may take larger ones."""

    def __init__(self, problem: str, variable: str = "") -> None:
        super().__init__(problem)
        self.variable = variable
