"""A tactic registers itself: a user's subclass is replayed from its text, and the library's are exported by name."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from models import chain
from root import ROOT

import partita as pt
from partita.compiler.plan.refusals import Seed

ARGS = [np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8))]
MESH = pt.Mesh(data=4, model=2)


def test_a_tactic_of_the_users_is_replayed_from_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pt.Tactic, "known", dict(pt.Tactic.known))

    @dataclass(frozen=True, repr=False)
    class Rows(pt.Tactic):
        axis: str

        def seeds(self, plan: pt.Plan) -> Iterator[Seed]:
            yield Seed(plan.source.addresses.arguments["x"], 0, self.axis, "x")

    plan = pt.plan(chain, MESH, *ARGS).apply(Rows("data"))
    assert plan.trace == "Rows(axis='data')"
    assert pt.replay(chain, MESH, plan.trace, *ARGS).layout() == plan.layout()


def test_a_type_checker_sees_every_public_name() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    names = {alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(pt.__all__) == {name for name in names if name}
