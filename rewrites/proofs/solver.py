"""Z3, if it is installed: it comes with `partita[proofs]`, and nothing else of Partita needs it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ...dialects.ground.errors import Error

# Z3 has no types.
z3: Any = import_module("z3") if find_spec("z3") else None

EFFORT = 1_000_000
"""The resource limit of one question to the solver: the same on every machine, unlike a time."""


def need() -> None:
    """Raises Error if Z3 is not installed."""
    if z3 is None:
        raise Error("laws are proved by Z3, which is not installed", helps=["pip install 'partita[proofs]'"])


def answer(facts: list[Any], effort: int = EFFORT) -> tuple[str, Any]:
    """Whether all facts can hold at once: `sat` with a model, `unsat`, or `unknown`."""
    solver = z3.Solver()
    solver.set("rlimit", effort)
    solver.set("random_seed", 0)
    solver.add(*facts)
    found = solver.check()
    return str(found), solver.model() if found == z3.sat else None
