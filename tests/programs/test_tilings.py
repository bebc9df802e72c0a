"""Every tiling that follows from a definition is placed and run on eight devices, and does not change the results."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from agreement import disagreement
from calls import CALLS, NO_CALL, Call
from figures import Figures

import partita as pt
from partita.compiler.api.plan import Plan, start
from partita.compiler.plan.claims import Action
from partita.compiler.trace.trace import Traced, trace
from partita.dialects.definitions.registry import definitions
from partita.dialects.reference.interpret import interpret
from partita.rewrites.decide.propagate import propagate
from partita.rewrites.decide.table import Claim
from partita.rewrites.program.program import Node

SIZES = (8, 4, 2)


@cache
def traced(call: Call) -> Traced:
    return trace(call.function, *call.args)


@cache
def started(call: Call, size: int) -> Plan:
    """The call's program on a mesh of one axis; its size is one that the index to place divides by."""
    return start(traced(call), pt.Mesh(a=size))


def nodes_of(plan: Plan, kind: str) -> list[Node]:
    """The nodes of the op: several if its values are placed independently."""
    nodes = [node for node in plan.source.program.nodes if node.op_name == kind]
    assert len({id(node.op) for node in nodes}) == 1
    return nodes


def placeable(call: Call) -> list[tuple[int, int, int]]:
    """(node of the call's op, index, devices that its extent divides over)."""
    found: list[tuple[int, int, int]] = []
    for at, node in enumerate(nodes_of(started(call, SIZES[0]), call.op)):
        for index, each in enumerate(node.signature.instance.indices):
            found.append((at, index, next((size for size in SIZES if each.extent % size == 0), 0)))
    return found


def place(call: Call, at: int, index: int, size: int) -> Plan:
    """Exactly this index placed: by a tile of a dim that contains it, or by hand if a tile places another index."""
    whole = started(call, size)
    node = nodes_of(whole, call.op)[at]
    for table, values in ((node.signature.operand_at, node.operands), (node.signature.result_at, node.results)):
        for where, value in zip(table, values, strict=True):
            if index in where:
                try:
                    plan = whole.tile(whole.source.addresses.names[value], where[index][0], "a")
                except pt.Error:
                    continue
                if claimed(plan, node.number) == index:
                    return plan
    return by_hand(whole, node, index, size)


def claimed(plan: Plan, node: int) -> int | None:
    claim = plan.table.axes[plan.mesh.place("a")].nodes[node]
    return None if claim is None else claim.at


def by_hand(whole: Plan, node: Node, index: int, size: int) -> Plan:
    """The minor index of a dim, placed by hand, because a tile of the dim places the major one."""
    table = whole.table.copy()
    extent = node.signature.instance.indices[index].extent
    axis = whole.mesh.place("a")
    claims = table.touch(axis)
    claims.nodes[node.number] = Claim(index, claims.whole.at(extent // size), 0)
    propagate(table, axis, [*node.operands, *node.results], 0)
    return replace(whole, table=table, actions=(Action("by hand", "place"),))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_derived_tiling_changes_no_result(call: Call, figures: Figures) -> None:
    for at, index, size in placeable(call):
        where = f"node {at}, index {index}, {size} devices"
        assert size, f"{where}: the index is not tried, because no number of devices divides it"
        plan = place(call, at, index, size)
        assert claimed(plan, nodes_of(plan, call.op)[at].number) == index, where
        plan.ir().verify()
        plan.ir(fused=False).verify()
        plan.spmd().verify()
        found = jax.tree.leaves(plan.compile()(*call.args))
        assert disagreement(found, expected(call)) == "", where
        figures.add("derived tilings executed", 1, of=1)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_interpreter_computes_the_same(call: Call) -> None:
    args = [np.asarray(each) for each in (*call.args, *traced(call).consts)]
    assert disagreement(interpret(traced(call).main, args), expected(call)) == ""


@cache
def expected(call: Call) -> list[Any]:
    return jax.tree.leaves(jax.jit(call.function)(*call.args))


def test_no_definition_is_left_out() -> None:
    assert {call.op for call in CALLS}.isdisjoint(NO_CALL)
    assert {call.op for call in CALLS} | set(NO_CALL) == set(definitions)
