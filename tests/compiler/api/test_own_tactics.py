"""A tactic registers itself: a user's subclass is replayed from its text, and the library's are exported by name."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import numpy as np
import pytest
from models import chain
from root import ROOT

import partita as pt
from partita.compiler.plan.seeds import Seed

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


def twice(w: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return w * 2, x * 2


FOUND = [
    pt.DataParallel,
    pt.FSDP,
    pt.Megatron,
    pt.SequenceParallel,
    pt.ContextParallel,
    pt.ExpertParallel,
    pt.VocabularyParallel,
]
NO_AXIS = {
    "zz": "the mesh has no axis `zz`",
    3: "takes the name of a mesh axis, a string, got 3",
    (): r"at least one mesh axis|got \(\)",
}


@pytest.mark.parametrize("axis", NO_AXIS, ids=repr)
@pytest.mark.parametrize("tactic", [*FOUND, lambda axis: pt.Tensor2D(axis, "model")])  # pyright: ignore
def test_an_axis_that_is_none_is_said_before_what_is_not_found(tactic: Callable[[object], pt.Tactic], axis: object) -> None:
    plan = pt.plan(twice, MESH, np.ones((8, 16), np.float32), np.ones(4, np.float32))
    with pytest.raises(pt.Error, match=NO_AXIS[axis]):  # type: ignore[index]
        plan.apply(tactic(axis))


@pytest.mark.parametrize("given", ["x", -1, 1.5, True])
def test_the_smallest_value_that_is_sharded_has_a_number_of_elements(given: object) -> None:
    plan = pt.plan(twice, MESH, np.ones((8, 16), np.float32), np.ones(4, np.float32))
    with pytest.raises(pt.Error, match=f"`smallest` is a number of elements, got {given!r}") as caught:
        plan.apply(pt.FSDP("data", smallest=given))  # type: ignore[arg-type]
    assert list(caught.value.helps) == ["write smallest=4096"]
