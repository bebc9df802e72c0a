"""The line of an operation: the innermost of the user's program, and behind it that of a library which it calls."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false

from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.inputs.lines import SourceLine

X = np.ones((8, 8), np.float32)


def lines(function: Any, name: str, *args: Any) -> list[SourceLine]:
    """The sources of the operations of one kind, in program order."""
    return [source for op, source in pt.trace(function, *args).sources.items() if op.name == f"lax.{name}"]


@pytest.fixture
def library(tmp_path: Path) -> Any:
    """A module of an installed package: one function computes, and one calls what it is given."""
    file = tmp_path / "site-packages" / "nets" / "dense.py"
    file.parent.mkdir(parents=True)
    text = (
        "import jax.numpy as jnp\n\n\ndef dense(x):\n    return jnp.sin(x)\n\n\ndef twice(call, x):\n    return call(call(x))\n"
    )
    file.write_text(text)
    module = ModuleType("dense")
    exec(compile(text, str(file), "exec"), vars(module))
    return module


def test_where_a_library_makes_an_operation_the_line_that_calls_it_comes_first(library: Any) -> None:
    def model(x: Any) -> Any:
        return jnp.cos(library.dense(x))

    line = model.__code__.co_firstlineno + 1
    (sine,), (cosine,) = lines(model, "sin", X), lines(model, "cos", X)
    assert (sine.file, sine.line, sine.function) == (__file__, line, cosine.function)
    assert sine.inner is not None and (sine.inner.place, sine.inner.function) == ("dense.py:5", "dense")
    assert str(sine) == f"{cosine}, through dense.py:5 in dense" and cosine.inner is None


def test_so_it_does_in_a_loop_and_in_a_function_that_jax_traces_apart(library: Any) -> None:
    def model(x: Any) -> Any:
        return jax.lax.scan(lambda x, _: (jax.jit(library.dense)(x), None), x, None, length=3)[0]

    (sine,) = lines(model, "sin", X)
    assert (sine.file, sine.line) == (__file__, model.__code__.co_firstlineno + 1)
    assert sine.inner is not None and sine.inner.place == "dense.py:5"


def test_what_a_library_calls_is_the_users_own_line(library: Any) -> None:
    (first, second) = lines(lambda x: library.twice(jnp.sin, jnp.tanh(x)), "sin", X)
    assert first.place == second.place and first.inner is not None and first.inner.place == "dense.py:9"

    def own(x: Any) -> Any:
        return jnp.sin(x)

    (sine, _) = lines(lambda x: library.twice(own, x), "sin", X)
    assert (sine.line, sine.inner) == (own.__code__.co_firstlineno + 1, None)


def test_a_library_that_is_traced_itself_has_its_own_line(library: Any) -> None:
    (sine,) = lines(library.dense, "sin", X)
    assert (sine.place, sine.inner) == ("dense.py:5", None)


def test_operations_inside_a_solver_know_their_own_lines() -> None:
    def kernel(x: Any) -> Any:
        return jnp.exp(-jnp.sum((x[:, None] - x[None]) ** 2, -1))

    def solved(x: Any, y: Any) -> Any:
        found, _ = jax.scipy.sparse.linalg.cg(lambda v: kernel(x) @ v + v, y, maxiter=10)
        return found

    inner, outer = kernel.__code__.co_firstlineno + 1, solved.__code__.co_firstlineno + 1
    assert {each.line for each in lines(solved, "exp", X, X[0])} == {inner}
    assert {each.line for each in lines(solved, "dot_general", X, X[0])} == {outer}
    # What the solver itself computes has the line that asks for it.
    assert {each.line for each in lines(solved, "div", X, X[0])} == {outer}


def test_a_conflict_inside_a_solver_is_shown_at_its_own_line() -> None:
    def kernel(x: Any) -> Any:
        return jnp.exp(-jnp.sum((x[:, None] - x[None]) ** 2, -1))

    def solved(x: Any, y: Any) -> Any:
        return jax.scipy.sparse.linalg.cg(lambda v: kernel(x) @ v + v, y, maxiter=10)[0]

    plan = pt.plan(solved, pt.Mesh(data=8), X, X[0]).apply(pt.Tile({"x": 0, "y": 0}, "data"))
    place = f"test_lines.py:{kernel.__code__.co_firstlineno + 1}"
    assert plan.conflicts and all(f"`sub` at {place}" in repr(each) for each in plan.conflicts)
