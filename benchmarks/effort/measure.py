"""What each way takes, beside the step on one device: lines, places, and whether it computes the same."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from types import ModuleType
from typing import Any

import jax
import numpy as np

from .. import hlo
from ..case import listed
from ..report import Cell
from . import constraints, constraints_everywhere, explicit, mapped, plain, tactics

# Those that set a mesh for the rest of the process come last.
WAYS = {
    "Partita": tactics,
    "shard_map": mapped,
    "jit, constraints on activations": constraints,
    "jit, constraints on weights too": constraints_everywhere,
    "explicit sharding": explicit,
}
COLUMNS = ["", "lines written", "lines replaced", "places", "places in the model", "collectives", "bytes received"]
STEPS = 3


@dataclass(frozen=True, slots=True)
class Edit:
    """A place in which a program differs from the plain one: the lines that are replaced, and how many are written there."""

    first: int
    replaced: int
    written: int


def lines(module: ModuleType) -> list[str]:
    """The lines of a program, without the sentence that says what it is."""
    return inspect.getsource(module).splitlines()[1:]


def edits(module: ModuleType) -> Iterator[Edit]:
    """The places of a program that differ from the plain one."""
    matcher = SequenceMatcher(None, lines(plain), lines(module), autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            yield Edit(first, last - first, end - start)


def is_in_the_model(edit: Edit) -> bool:
    """Whether it is in one of the functions between the parameters and the training step."""
    text = lines(plain)
    start, end = (next(at for at, each in enumerate(text) if each.startswith(name)) for name in ("def norm", "def train_step"))
    # What is written in front of a `def` is outside of it.
    return start < edit.first < end


def effort(module: ModuleType) -> list[Cell]:
    """Lines written, lines replaced, places, places in the model."""
    found = list(edits(module))
    inside = sum(map(is_in_the_model, found))
    return [sum(each.written for each in found), sum(each.replaced for each in found), len(found), inside]


def trained(step: Any, args: Any) -> Any:
    """What some steps give: the parameters and the loss."""
    params, opt, batch = args
    loss = None
    for _ in range(STEPS):
        params, opt, loss = step(params, opt, batch)
    return jax.device_get((params, loss))


def programs() -> Iterator[tuple[str, Any, Any]]:
    """Each way: its step and the arguments of a call, after a check that it trains as the plain program does."""
    expected = trained(*plain.program())
    for name, module in WAYS.items():
        step, args = module.program()
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4), trained(step, args), expected)
        yield name, step, args


def rows() -> Iterator[list[Cell]]:
    """A row for each way."""
    for name, step, args in programs():
        compiled = hlo.collectives(step.lower(*args).compile().as_text())
        yield [name, *effort(WAYS[name]), listed(hlo.counts(compiled)), hlo.received(compiled)]
