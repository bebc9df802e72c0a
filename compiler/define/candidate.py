"""A definition to be tried, and the error if it fails."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from jax import Array

from ...dialects.definitions.syntax_tree import Definition
from ..inputs.string_literals import Written
from .samples import Type

RunBlocks = Callable[[Mapping[str, Any], Sequence[Array], Sequence[Type]], Sequence[Array]]
"""(static parameters, operands, types of the results) -> results."""

_NAMES = ("b", "c", "e", "block", "part")


@dataclass(frozen=True, slots=True)
class DefinitionCandidate:
    """A function, and the definition that its author wrote for it."""

    definition: Definition
    written: Written
    run: RunBlocks

    @property
    def title(self) -> str:
        return self.definition.title

    def refuse(self, variable: str, notes: Sequence[str], ways: Iterable[str] = (), size: int = 0, larger: int = 0) -> NoReturn:
        """Raises Error with a counter-example and alternatives. If blocks of `size` are too small, blocks of `larger` agree."""
        bare = variable.rstrip(".")
        helps = [f"write `{variable}:` for {'dims' if bare != variable else 'a dim'} that cannot be partitioned", *ways]
        problem = "cannot be placed"
        if larger:
            problem = f"cannot be cut into blocks of {size}"
            helps.insert(0, kept_together(self.written.text, self.definition, variable, larger))
        title = f"`{self.title}` does not match its definition: `{variable}` {problem}"
        self.written.fail(bare, title, *helps, notes=notes)


class Unfit(Exception):
    """Raised if the function does not take these shapes. `variable` names the index whose blocks are too small, if one is."""

    def __init__(self, problem: str, variable: str = "") -> None:
        super().__init__(problem)
        self.variable = variable


def kept_together(text: str, definition: Definition, index: str, size: int) -> str:
    """The help if smaller blocks give another result: where possible, a definition that keeps blocks of `size` whole.

    softmax(x)  out[i, j:] = @(x[i, j:])    -->    out[(i b), j:] = @(x[(i b), j:])  size b = 2
    """
    clauses = definition.at or definition.sizes or definition.extents or definition.front or definition.backwards
    body = text.partition(")")[2].strip()
    names = [name for name in _NAMES if not re.search(rf"(?<!\w){name}(?!\w)", text)]
    if clauses or index.endswith("..") or not names or re.search(rf"\[\s*{index}\s*=|\+\s*{index}(?!\w)", body):
        return f"say that blocks of {size} stay together: `({index.rstrip('.')} b)`, followed by `size b = {size}`"
    block = names[0]
    # A fold over the index must run over its blocks too: `sum(i)` becomes `sum(i, b)`.
    folded = re.sub(rf"(\w+\([^()\[\]]*(?<!\w){index})(?=\s*[,)])", rf"\1, {block}", body)
    factored = re.sub(rf"(?<=[\[,])(\s*){index}(?=\s*[\],])", rf"\1({index} {block})", folded)
    return f"say that blocks of {size} stay together: `{' '.join(factored.split())}  size {block} = {size}`"
