"""The table of claims in text: claims on the indices of ops and on values, stops, conflicts, and points of redistribution.

%0 = lax.dot_general %x, %w {...} attributes {plan.claims = [#plan.claim<0 data*64 by 1>]}   -->   Claim(0, data*64, 0)
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp

from ...dialects.ground.errors import Error
from ...dialects.mesh import Mesh
from ...dialects.plan import (
    ARGUMENT,
    ClaimAt,
    ClaimAttr,
    Claimed,
    Conflict,
    ConflictAttr,
    MarkAttr,
    OwnAttr,
    Point,
    PointAttr,
    Stop,
    StopAttr,
    ValueMarks,
)
from ...dialects.ranges.algebra import Place
from ..decide.table import AxisTable, BlockedOp, Claim, Clash, Key, Table
from ..program.program import NO_NODE, NO_VALUE, Program
from .device_sets import note_sets, read_sets
from .ends import RECONCILED, Ends, Holder, Notes, Texts, said
from .verify import check_factors


def with_claims(table: Table, mesh: Mesh, tactics: Iterable[str]) -> ModuleOp:
    """A copy of the program's module with the claims of a table. `tactics` are the texts of the tactics that made them."""
    program, notes = table.program, Notes(table.program)
    for each in table.axes.values():
        _note_claims(each, program, notes)
    note_sets(table.sets, notes)
    marked = {*table.widened, *table.each_trip, *(value for value, dims in table.closed.items() if dims)}
    for value in sorted(marked):
        holder, end = notes.ends.result(value)
        closed = tuple(sorted(table.closed.get(value, ())))
        notes.note(holder, MarkAttr(ValueMarks(end, closed, value in table.widened, value in table.each_trip)))
    for stop in table.blocked.values():
        node = program.nodes[stop.node]
        name, at = notes.ends.name(node), stop.operand
        end = f"{name} {f'operand {at}' if at >= 0 else f'result {-1 - at}'}".strip()
        notes.note(node.op, StopAttr(Stop(end, stop.dim, stop.extent, stop.factor, stop.tactic + 1, stop.reason)))
    for clashes, name in ((table.conflicts, ""), (table.reconciled, RECONCILED)):
        for clash in clashes.values():
            asked = tuple((_said(claim), position) for claim, position in clash.claims)
            if clash.node == NO_NODE:
                notes.note(notes.ends.arguments[clash.value], ConflictAttr(Conflict(ARGUMENT, clash.axis, asked)), name)
            else:
                node = program.nodes[clash.node]
                notes.note(node.op, ConflictAttr(Conflict(notes.ends.name(node), clash.axis, asked)), name)
    return notes.module(mesh, tactics)


def _note_claims(table: AxisTable, program: Program, notes: Notes) -> None:
    ends = notes.ends
    for node, claim in zip(program.nodes, table.nodes, strict=True):
        if claim is not None:
            notes.note(node.op, ClaimAttr(ClaimAt(ends.name(node), _said(claim))))
    for value, claim in zip(program.values, table.values, strict=True):
        if claim is not None:
            holder, end = ends.result(value)
            notes.note(holder, OwnAttr(ClaimAt(end, _said(claim))))
    for number in sorted(table.points):
        node = program.nodes[number]
        notes.note(node.op, PointAttr(Point(ends.name(node), (table.whole.axis,))))


def _said(claim: Claim) -> Claimed:
    return Claimed(claim.at, claim.factor, claim.tactic + 1, claim.held)


def _claim(claimed: Claimed) -> Claim:
    return Claim(claimed.at, claimed.factor, claimed.tactic - 1, claimed.held)


def read_claims(program: Program, texts: Texts) -> Table:
    """The table that the attributes of a program's module say. Raises Error for claims that do not fit."""
    table, ends = Table(program), Ends(program)
    for holder, (name, claimed) in texts.of(ClaimAttr):
        node, claims = ends.node(holder, name), touched(table, claimed.factor.axis)
        if claims.nodes[node.number] is not None:
            raise Error(f"{said(holder)} has two claims on `{claimed.factor.axis}`", helps=["an op uses an axis once"])
        claims.nodes[node.number] = _claim(claimed)
    for node, claims in zip(program.nodes, zip(*(each.nodes for each in table.axes.values()), strict=True), strict=False):
        check_factors(node, [(each.at, each.factor) for each in claims if each is not None])
    for holder, (end, claimed) in texts.of(OwnAttr):
        touched(table, claimed.factor.axis).values[ends.value(holder, end)] = _claim(claimed)
    for holder, point in texts.of(PointAttr):
        for axis in point.axes:
            touched(table, axis).points |= {ends.node(holder, point.node).number}
    for holder, marks in texts.of(MarkAttr):
        value = ends.value(holder, marks.end)
        table.closed |= {value: frozenset(marks.closed)} if marks.closed else {}
        table.widened |= {value} if marks.widened else set()
        table.each_trip |= {value} if marks.each_trip else set()
    table.sets = read_sets(program, ends, texts, table.axes)
    for holder, stop in texts.of(StopAttr):
        _read_stop(table, ends, holder, stop)
    for name, clashes in (("", table.conflicts), (RECONCILED, table.reconciled)):
        for holder, conflict in texts.of(ConflictAttr, name):
            key = _key(ends, holder, conflict)
            clashes[key] = Clash(*key, tuple((_claim(claim), position) for claim, position in conflict.claims))
    return table


def touched(table: Table, axis: Place) -> AxisTable:
    """The table of an axis; made if there is none."""
    found = table.axes.get(axis)
    return table.touch(axis) if found is None else found


def _read_stop(table: Table, ends: Ends, holder: Holder, stop: Stop) -> None:
    name, _, number = stop.end.rpartition("operand " if "operand" in stop.end else "result ")
    node, at = ends.node(holder, name.strip()), int(number)
    operand, axis = at if "operand" in stop.end else -1 - at, stop.factor.axis
    blocked = BlockedOp(node.number, operand, axis, stop.dim, stop.extent, stop.factor, stop.reason, stop.tactic - 1)
    table.blocked[node.number, operand, axis] = blocked


def _key(ends: Ends, holder: Holder, conflict: Conflict) -> Key:
    if conflict.where == ARGUMENT:
        return NO_NODE, ends.value(holder, ARGUMENT), conflict.axis
    return ends.node(holder, conflict.where).number, NO_VALUE, conflict.axis
