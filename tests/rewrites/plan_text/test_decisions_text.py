"""A plan's claims and decisions as text: what is read from it is the plan, and what is edited in it is lowered."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import jax
import numpy as np
import pytest
from example_plans import examples
from generated import Case, cases, examples as some
from hypothesis import given as drawing
from lowered import lowers_from_its_decisions
from mlir_files import opt

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.graph.graph import Graph
from partita.compiler.plan import lowering
from partita.rewrites.decide import price

Array: TypeAlias = Any

MESH = pt.Mesh(data=4, model=2)
LARGE = ("larger", "Llama", "flax", "U-Net", "mixer", "ResNet", "annotated demo", "demo, Megatron")


def test_lowering_the_text_of_decisions_gives_the_spmd_of_generated_plans() -> None:
    start = price.START

    @some(70)
    @drawing(cases())
    def run(case: Case) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(price, "START", start * (case.share % 2))
            lowers_from_its_decisions(case.plan)

    run()


@pytest.mark.parametrize("name", [name for name in examples() if not name.startswith(LARGE)])
def test_lowering_the_text_of_decisions_gives_the_spmd_of_examples(name: str) -> None:
    plan, _ = examples()[name]()
    lowers_from_its_decisions(plan)


def constrained_where_they_meet(x: Array, y: Array) -> Array:
    return (pt.constrain(x * 2, "b, _") + pt.constrain(y * 3, "_, b")).reshape(2, 4, 8)


def repeated_and_constrained(x: Array) -> Array:
    h = jax.numpy.broadcast_to(x[None], (2, 4)).reshape(8)
    return jax.numpy.sum(jax.numpy.tanh(pt.constrain(h, "b")))


@pytest.mark.parametrize("split", [True, False])
def test_decisions_on_sub_axes_are_read_back(split: bool) -> None:
    given = np.ones((8, 8), np.float32)
    plan: Any = pt.plan(constrained_where_they_meet, pt.Mesh(b=4), given, given).apply(pt.Annotated())
    lowers_from_its_decisions(plan.propagate("b", split=True) if split else plan)


def test_decisions_that_split_an_axis_are_read_back() -> None:
    gradient = cast("Callable[[Array], Array]", jax.grad(repeated_and_constrained))
    plan = pt.plan(gradient, pt.Mesh(b=4), np.ones(4, np.float32)).apply(pt.Annotated())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(price, "START", 0.0)
        lowers_from_its_decisions(plan)
        assert str(plan.decided.mesh) == "b.0=2, b.1=2"


def two_products(x: Array, w: Array, v: Array) -> Array:
    return x @ w + x @ v


def layers(x: Array, w: Array, v: Array) -> Array:
    return jax.numpy.tanh(jax.numpy.tanh(x @ w) @ v) * 2


def arrays(function: Callable[..., Array]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    shapes = (8, 16), (16, 8), (8, 8) if function is layers else (16, 8)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


ACTIONS: dict[str, Sequence[tuple[Any, ...]]] = {
    "two axes": [("tile", "x", 0, "data"), ("tile", "w", 1, "model")],
    "one axis, the later tactic loses": [("tile", "x", 0, "data"), ("tile", "w", 0, "data")],
    "a value that stays whole": [("replicate", "w", "data"), ("tile", "x", 1, "data")],
    "two axes on one dim": [("tile", "x", 0, "data"), ("tile", "x", 0, "model"), ("tile", "v", 0, "data")],
    "a sum": [("tile", "x", 1, "data")],
}


def planned(function: Callable[..., Array], actions: Sequence[tuple[Any, ...]], propagate: bool = True) -> Plan:
    plan = pt.plan(function, MESH, *arrays(function))
    for name, *args in actions:
        plan = getattr(plan, name)(*args, propagate=propagate)
    return plan


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("function", [two_products, layers])
def test_propagating_the_text_of_what_tactics_claim_gives_the_claims_of_the_plan(
    function: Callable[..., Array], name: str
) -> None:
    asked, made = (str(lowering.claims(planned(function, ACTIONS[name], each))) for each in (False, True))
    assert asked.replace(", propagate=False", "") != made
    assert opt(["-p", "propagate"], asked).replace(", propagate=False", "").strip() == made.strip()


def run(decided: str, passes: str, args: Sequence[np.ndarray]) -> tuple[str, np.ndarray]:
    """Lowers a text of decisions: what one device does, and the result on eight devices."""
    placed = opt(["-p", passes], decided)
    (result,) = Graph.parse(opt(["-p", "fuse,to-flow"], placed)).run(*args)
    return opt(["-p", "fuse,to-spmd"], placed), np.asarray(result)


def collectives(text: str) -> list[str]:
    return re.findall(r"spmd\.(all_\w+|reduce_scatter|permute)", text)


def without_moves(text: str) -> str:
    """The text of decisions without its moves, which `-p move` finds again."""
    text = re.sub(r",? ?plan\.(?:moves|reads) = \[.*?>\](?=[,} ])", "", text)
    return text.replace(" attributes {}", "").replace("func.return {} ", "func.return ")


def test_an_edited_resolution_changes_the_lowering_and_not_the_result() -> None:
    args = arrays(two_products)
    text = str(lowering.decisions(planned(two_products, ACTIONS["a sum"])))
    edited = text.replace("plan.sums = [#plan.sum<{+data}>]", "plan.sums = []")
    assert edited != text
    (late, one), (early, other) = (run(without_moves(each), "move,materialise", args) for each in (text, edited))
    assert collectives(late) == ["all_reduce"]
    assert collectives(early) == ["all_reduce", "all_reduce"]
    for found in (one, other):
        np.testing.assert_allclose(found, two_products(*args), rtol=1e-4, atol=1e-4)


def test_an_edited_path_changes_the_lowering_and_not_the_result() -> None:
    args = arrays(layers)
    cheapest, dearer = "reduce_scatter add over (data) 0@2", "all_reduce add over (data); slice over (data) 0@2"
    text = str(lowering.decisions(planned(layers, [("tile", "w", 0, "data"), ("tile", "tanh#1", 0, "data")])))
    edited = text.replace(cheapest, dearer)
    assert edited != text
    (short, one), (long, other) = (run(each, "materialise", args) for each in (text, edited))
    assert "all_reduce" not in collectives(short)
    assert "all_reduce" in collectives(long)
    for found in (one, other):
        np.testing.assert_allclose(found, layers(*args), rtol=1e-4, atol=1e-4)
