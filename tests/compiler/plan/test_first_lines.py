"""The first lines of a lowered program are made without the rest of it, and are those of the whole text."""

import jax
import jax.numpy as jnp
import pytest
from example_plans import examples

import partita as pt
from partita.compiler.plan.lowering import first_lines
from partita.compiler.shell.run_line import do
from partita.compiler.shell.session import Session
from partita.compiler.shell.typed_line import Typed

SOME = (
    "demo, plain",
    "demo, batch",
    "demo, ZeRO-3",
    "U-Net, plain",
    "experts, experts",
    "lstm, units",
    "scanned layers, ZeRO-3",
    "heat, rows",
    "mlp.partita, annotated",
)
MESH = pt.Mesh(data=4, model=2)


@pytest.mark.parametrize("name", SOME)
def test_they_are_those_of_the_whole_text(name: str) -> None:
    plan, _ = examples()[name]()
    every = str(plan.spmd()).splitlines()
    for most in (3, 12, 40, 150, 500, len(every) + 1):
        lines, is_whole = first_lines(plan, most)
        assert lines == (every if is_whole else every[:most]), most


@pytest.mark.parametrize("is_returned", [False, True])
def test_a_product_that_is_read_again_later_is_not_taken_for_its_transpose(is_returned: bool) -> None:
    def twice(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        product = x @ y
        y = product.T
        for _ in range(40):
            y = jnp.sin(y)
        return y, product if is_returned else product * 2

    shape = jax.ShapeDtypeStruct((8, 8), "float32")
    plan = pt.plan(twice, MESH, shape, shape)
    for most in range(1, 30):
        assert first_lines(plan, most)[0][:most] == str(plan.spmd()).splitlines()[:most]


def test_the_shell_says_how_to_see_the_rest() -> None:
    plan, _ = examples()["demo, ZeRO-3"]()
    said = do(Session.start(plan), Typed("lower spmd")).text.splitlines()
    assert len(said) == 41
    assert said[1].endswith("more characters")
    assert said[2:40] == str(plan.spmd()).splitlines()[2:40]
    assert said[40] == f"and so on, for {len(plan.source.program.nodes):,} ops of the program: `lower spmd FILE` writes all"
