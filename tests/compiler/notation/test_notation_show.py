"""A program printed in index notation reads back as the same program, or an error says what cannot be printed."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generated import Program, examples, programs
from hypothesis import given
from root import ROOT
from twins import TWINS, Twin
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import partita as pt
from partita.compiler.notation.show import print_program
from partita.compiler.trace.trace import Traced
from partita.dialects.lax import ConstantOp, LaxOp
from partita.examples import gpt

S = jax.ShapeDtypeStruct


def ops(module: ModuleOp) -> list[str]:
    """The operations of a program, ignoring the positions of its constants."""
    block = module.ops.first.body.block  # pyright: ignore
    names: dict[SSAValue, str] = {argument: f"%{argument.index}" for argument in block.args}
    said: list[str] = []
    for op in block.ops:
        if isinstance(op, ConstantOp):
            names[op.results[0]] = f"{op.params.text} : {op.results[0].type}"
            continue
        params = op.params.text if isinstance(op, LaxOp) else ""
        said.append(f"{op.name} {params} {[names[each] for each in op.operands]} : {[str(each) for each in op.result_types]}")
        names |= {result: f"%{len(said)}.{number}" for number, result in enumerate(op.results)}
    return said


def again(traced: Traced) -> Traced:
    """The program that its notation reads back as."""
    read = pt.parse(print_program(traced))
    return pt.trace(next(iter(read.functions.values())), *read.arguments().values())


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_what_is_printed_is_the_program(twin: Twin):
    structs = twin.read.arguments().values()
    traced = pt.trace(twin.function, *structs)
    assert ops(again(traced).module) == ops(traced.module)


@given(case=programs(grad=False, pool=(4, 6, 8)))
@examples(60)
def test_a_generated_program_is_printed_whole_or_not_at_all(case: Program):
    traced = pt.trace(case.function, *case.arrays())
    try:
        made = again(traced)
    except pt.Error as error:
        assert "cannot be printed in index notation" in error.title
    else:
        assert ops(made.module) == ops(traced.module)


def test_a_printed_gradient_computes_the_same():
    def loss(w: Any, x: Any) -> Any:
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    step = jax.grad(loss)
    w, x = np.full((4, 6), 0.1, np.float32), np.arange(32, dtype=np.float32).reshape(8, 4) * 0.1
    read = pt.parse(print_program(pt.trace(step, w, x)))
    np.testing.assert_allclose(next(iter(read.functions.values()))(w, x), step(w, x), rtol=1e-6)


def test_names_and_the_mesh_are_kept():
    text = "mesh data=4\n\nfn f(x: f32[8, 4]) -> f32[4] {\n  y[i] = sum(j) x[j, i]\n  return y\n}\n"
    assert pt.parse(text).plan().notation() == text


def test_an_op_without_an_equation_is_printed_as_a_primitive():
    said = print_program(pt.trace(lambda x: jnp.sort(x)[::-1], S((8,), "float32")))
    assert "lax.sort(x, dimension=0, is_stable=True, num_keys=1)" in said
    assert "[7 - i]" in said


def test_numbers_keep_their_dtypes():
    def numbers(x: Any, n: Any) -> Any:
        return jax.lax.pad(x, np.float16(0.5), ((1, 1, 0),)), jax.lax.dynamic_slice(x, (np.int32(2),), (4,)), n + 1, 3.0

    traced = pt.trace(numbers, S((8,), "float16"), S((8,), "uint8"))
    assert ops(again(traced).module) == ops(traced.module)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x)[0], "`scan`"),
        (lambda x: jax.pure_callback(lambda y: y, x, x), "`pure_callback`"),
    ],
)
def test_an_op_that_the_notation_cannot_express_is_an_error(function: Callable[..., Any], what: str):
    with pytest.raises(pt.Error) as caught:
        print_program(pt.trace(function, S((8,), "float32")))
    assert what in caught.value.title
    assert caught.value.helps


def test_a_training_step_is_printed_and_read_back():
    config = gpt.Config(vocabulary=16, length=8, layers=1, width=16, heads=2)
    params = gpt.init(config)
    rows = np.arange(32, dtype=np.int32).reshape(4, 8) % 16
    state, batch = gpt.OPTIMIZER.init(params), {"x": rows, "y": rows[::-1].copy()}
    traced = pt.trace(gpt.train_step, params, state, batch)
    assert ops(again(traced).module) == ops(traced.module)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.partita")), ids=lambda path: path.stem)
@pytest.mark.parametrize("gradient", [False, True], ids=["program", "gradient"])
def test_an_example_is_printed_and_read_back(path: Path, gradient: bool):
    read = pt.load(path)
    function, structs = list(read.functions.values())[-1], list(read.arguments().values())
    floats = tuple(number for number, each in enumerate(structs) if jnp.issubdtype(each.dtype, jnp.floating))
    traced = pt.trace(jax.grad(lambda *args: jnp.sum(function(*args)), floats) if gradient else function, *structs)
    assert ops(again(traced).module) == ops(traced.module)
