"""The repr of each object: a few lines for programs of any size, and nothing is computed for it."""

import numpy as np
import pytest
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
MESH = pt.Mesh(data=4, model=2)


@pytest.fixture
def plan() -> pt.Plan:
    return pt.plan(chain, MESH, X, W1, W2).tile("x", 0, "data").tile("w1", 1, "model")


def test_a_plan_prints_its_tactics_and_what_is_known(plan: pt.Plan):
    assert repr(plan) == "Plan of chain on data=4, model=2: 2 tactics\n  tile('x', 0, 'data')\n  tile('w1', 1, 'model')"
    plan.counts()
    assert repr(plan).endswith("\n1 all_reduce")


def test_what_a_plan_is_made_of_prints_on_a_line(plan: pt.Plan):
    parts = (plan.source, plan.source.traced, plan.source.addresses, plan.compile(), plan.lower(), pt.jit(chain, mesh=MESH))
    assert all(len(repr(part)) < 100 and "\n" not in repr(part) for part in parts)


def test_lists_read_as_sentences(plan: pt.Plan):
    (collective,) = plan.collectives()
    assert repr(collective) == str(collective)
    assert str(collective).startswith("all_reduce of `result` over model: ")


def test_a_function_may_have_parameters_of_our_names():
    def product(fn: np.ndarray, mesh: np.ndarray) -> np.ndarray:
        return fn @ mesh

    made = pt.plan(product, MESH, fn=X, mesh=W1)
    assert made.arguments() == pt.replay(product, MESH, "", fn=X, mesh=W1).arguments() == ["fn", "mesh"]
