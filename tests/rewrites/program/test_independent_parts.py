"""Values are in one part of a program where ops, or the regions that hold them, join them."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import partita as pt
from partita.rewrites.program.independent_parts import parts
from partita.rewrites.program.program import NO_VALUE, Program, ValueId

ROW = jax.ShapeDtypeStruct((8,), jnp.float32)


def program_of(function: Callable[..., Any]) -> Program:
    return pt.plan(function, pt.Mesh(d=8), ROW, ROW).source.program


def by_rounds(program: Program) -> list[int]:
    """The parts again: the values of each op and region take the least number among them, until nothing changes."""

    def joined() -> Iterator[list[ValueId]]:
        for node in program.nodes:
            values = [value for value in (*node.operands, *node.results) if not is_given(value)]
            yield values
            for region in {node.region, *node.reads, *(program.region[value] for value in node.results)} - {0}:
                inside.setdefault(region, []).extend(values)
        yield from inside.values()

    def is_given(value: ValueId) -> bool:
        maker = program.producer[value]
        return not program.shape(value) and (maker == NO_VALUE or not program.nodes[maker].operands)

    inside: dict[int, list[ValueId]] = {}
    found, groups = [int(value) for value in program.values], [*joined()]
    before: list[int] = []
    while found != before:
        before = [*found]
        for group in groups:
            for each in group:
                found[each] = min(found[other] for other in group)
    return found


def apart(x: Any, y: Any) -> Any:
    return x * 2, y * 2


def met(x: Any, y: Any) -> Any:
    return x + jnp.tanh(y)


def carried(x: Any, y: Any) -> Any:
    """Two carries that never meet are in one loop."""
    return jax.lax.scan(lambda c, _: ((c[0] * 2, jnp.sin(c[1])), None), (x, y), None, length=3)[0]


def looped_apart(x: Any, y: Any) -> Any:
    return tuple(jax.lax.scan(lambda c, _: (c * 2, None), each, None, length=3)[0] for each in (x, y))


def chosen(x: Any, y: Any) -> Any:
    """All devices need the predicate whole, wherever the operands of the branches lie."""
    return jax.lax.cond(x[0] > 0, lambda y: y * 2, jnp.sin, y)


@pytest.mark.parametrize(("function", "count"), [(apart, 2), (met, 1), (carried, 1), (looped_apart, 2), (chosen, 2)])
def test_arguments_are_in_one_part_if_ops_or_a_region_join_them(function: Callable[..., Any], count: int) -> None:
    program = program_of(function)
    found = parts(program)
    assert len({found[value] for value in program.arguments}) == count
    assert [*found] == by_rounds(program)


def test_a_number_that_no_op_computes_joins_nothing() -> None:
    program = program_of(lambda x, y: (lambda two: (x * two, y * two))(jnp.float32(2)))
    assert len({parts(program)[value] for value in program.arguments}) == 2
