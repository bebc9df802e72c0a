"""Decisions in text: where ops run, which sums they carry, and how values move.

    %0 = lax.dot_general %x, %w {...} attributes {
        plan.place = [#plan.place<0 data*64>],
        plan.moves = [#plan.move<0: operand 1: [data*2, 8] to [8, 8] by all_gather over (data) 0@2, because of 2>]} : ...

The moves of an op that exchanges what it has selected or sorted follow from its placement, and are not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import ModuleOp

from ...dialects.ground.errors import Error
from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh, with_parts
from ...dialects.plan import Carried, Home, HomeAttr, MoveAttr, Moved, OpPlace, PlaceAttr, ReadAttr, Reading, SumAttr
from ..decide.causes import causes_of, is_own
from ..decide.decide import Decisions, Move, moved_so, starter
from ..decide.deferred_reductions import DeferredReduction
from ..decide.placements import OpPlacement, Placements, place_op, placed_so
from ..decide.table import Table
from ..program.program import NodeId, Program, ValueId
from ..redistribute.kinds.halo import joint
from ..redistribute.path_text import path_text, read_path
from ..redistribute.search import path
from .device_sets import note_sets, read_sets
from .ends import Ends, Holder, Notes, Texts, said
from .verify import check_factors, check_moves, check_sums, refused

Use = tuple[NodeId, int]

# --- writing -----------------------------------------------------------------------------------------------------------


def with_decisions(decisions: Decisions, mesh: Mesh, tactics: Iterable[str]) -> ModuleOp:
    """A copy of the program's module with these decisions. `tactics` are the texts of the tactics that cause them."""
    program, notes = decisions.placements.program, Notes(decisions.placements.program)
    _note_places(decisions.placements, notes)
    note_sets(decisions.placements.table.sets, notes)
    for number, carry in decisions.carried.items():
        node = program.nodes[number]
        notes.note(node.op, SumAttr(Carried(notes.ends.name(node), carry.pend, carry.once)))
    _note_moves(decisions, notes)
    return notes.module(with_parts(mesh, decisions.placements.table.axes), tactics)


def _note_places(placements: Placements, notes: Notes) -> None:
    """Writes where each op runs, the layouts of arguments, and those that tactics gave other values."""
    program, ends = placements.program, notes.ends
    for node, placed in zip(program.nodes, placements.nodes, strict=True):
        if placed.placement:
            notes.note(node.op, PlaceAttr(OpPlace(ends.name(node), placed.placement)))
    laid = {value: home for value in program.arguments if (home := placements.homes[value]).axes}
    for value, layout in (laid | placements.pinned).items():
        holder, end = ends.result(value)
        notes.note(holder, HomeAttr(Home(end, layout)))
    for position, value in enumerate(program.returned):
        if (layout := placements.results.get(value)) is not None:
            holder, end = ends.operand(program.end, position)
            notes.note(holder, HomeAttr(Home(end, layout)))


def _note_moves(decisions: Decisions, notes: Notes) -> None:
    moves = [move for move in decisions.moves if not is_own(move)]
    numbers = {move: number for number, move in enumerate(moves)}
    after = {move.before: move for move in reversed(moves) if move.before is not None}
    for move, number in numbers.items():
        if is_spare := not move.uses and move in after:
            holder, end = notes.ends.operand(*after[move].uses[0])
        else:
            first = move.uses[0] if move.uses else None
            holder, end = notes.ends.result(move.value) if first is None else notes.ends.operand(*first)
        text = Moved(
            number,
            end,
            move.source,
            move.target,
            path_text(move.path),
            is_spare,
            None if move.before is None else numbers[move.before],
            tuple(sorted(numbers[each] for each in move.together)),
            move.waits,
            None if (host := move.host) is None else numbers[host],
            not move.shared,
            tuple(each + 1 for each in causes_of(decisions, move, *move.path.steps)),
        )
        notes.note(holder, MoveAttr(text))
        for use in move.uses[1:]:
            holder, end = notes.ends.operand(*use)
            notes.note(holder, ReadAttr(Reading(end, number)))


# --- reading -----------------------------------------------------------------------------------------------------------


def read_decisions(program: Program, texts: Texts, mesh: Mesh) -> Decisions:
    """The decisions that the attributes of a program's module say. Raises Error if they are wrong."""
    placements, carried = read_placements(program, texts)
    made = _Moves(placements, Ends(program), mesh)
    for holder, text in texts.of(MoveAttr):
        made.add(holder, text)
    made.link(texts)
    found = moved_so(placements, carried, list(made.moves.values()), made.homes)
    check_moves(found)
    return found


def read_placements(program: Program, texts: Texts) -> tuple[Placements, dict[NodeId, DeferredReduction]]:
    """Where ops run, how values lie, and the sums that ops carry."""
    ends, nodes = Ends(program), [place_op(node.signature, ()) for node in program.nodes]
    for holder, (name, placed) in texts.of(PlaceAttr):
        node = ends.node(holder, name)
        check_factors(node, placed)
        nodes[node.number] = place_op(node.signature, placed)
    placements = _laid_out(program, nodes, ends, texts)
    carried: dict[NodeId, DeferredReduction] = {}
    for holder, (name, pending, once) in texts.of(SumAttr):
        node = ends.node(holder, name)
        if not node.results:
            raise refused(node, f"{said(holder)} has no result, and carries no sum")
        carried[node.number] = DeferredReduction(pending, once)
        made = placements.nodes[node.number].with_sum(pending)
        placements.set_sum(node, pending if made is None else made)
    check_sums(placements, carried)
    return placements, dict(sorted(carried.items()))


def _laid_out(program: Program, nodes: list[OpPlacement], ends: Ends, texts: Texts) -> Placements:
    arguments, pinned, results = dict[ValueId, Layout](), dict[ValueId, Layout](), dict[ValueId, Layout]()
    for holder, (end, layout) in texts.of(HomeAttr):
        value = ends.value(holder, end)
        if layout.global_shape != program.shape(value) or layout.pending:
            title = f"`{end}` of {said(holder)} has the shape {list(program.shape(value))}, and cannot be {layout}"
            raise Error(title, helps=["a home is a layout of the whole value, without pending sums"])
        is_result = program.producer[value] >= 0
        (results if holder is ends.last else pinned if is_result else arguments)[value] = layout
    used = {factor.axis for placed in nodes for _, factor in placed.placement}
    table = Table(program, sets=read_sets(program, ends, texts, used))
    return placed_so(Placements(table, program, nodes, pinned, results=results), arguments)


class _Moves:
    """The moves of a text, by their numbers."""

    def __init__(self, placements: Placements, ends: Ends, mesh: Mesh) -> None:
        self.placements, self.program, self.ends, self.mesh = placements, placements.program, ends, mesh
        self.moves: dict[int, Move] = {}
        self.texts: dict[int, Moved] = {}
        self.homes: dict[ValueId, Move] = {}

    def add(self, holder: Holder, text: Moved) -> None:
        """Reads one move. Those that it starts from, or shares collectives with, are linked later."""
        if text.number in self.moves:
            raise Error(f"two moves have the number {text.number}", helps=["each move has a number of its own"])
        is_home = "operand" not in text.end
        use = None if is_home else self.ends.use(holder, text.end)
        value = self.ends.value(holder, text.end)
        region = self.program.region[value] if use is None else self.program.use_region(*use)
        self.check_ends(holder, text, value)
        width = self.placements.width(value)
        node = self.program.maker(value) if use is None or use[0] == self.program.end else self.program.nodes[use[0]]
        try:
            way = read_path(text.path, text.source, text.target, width, self.mesh)
        except Error as error:
            raise refused(node, error.title, *error.helps) from None
        move = Move(value, text.source, text.target, way, None, not text.is_alone, region, self.program.trips(region))
        move.is_said = way is not path(text.source, text.target, width)
        if text.waits and use is not None:
            move.anchor = starter(self.placements, use[0])
        self.moves[text.number], self.texts[text.number] = move, text
        if is_home:
            self.homes[value] = move
        elif use is not None and not text.is_spare:
            move.uses.append(use)

    def check_ends(self, holder: Holder, text: Moved, value: ValueId) -> None:
        """Whether both layouts of a move are layouts of its value."""
        for layout in (text.source, text.target):
            layout.verify()
            if layout.global_shape != self.program.shape(value):
                shape = list(self.program.shape(value))
                raise Error(
                    f"move {text.number} at {said(holder)} is of a value of the shape {shape}, which cannot be {layout}"
                )

    def named(self, number: int) -> Move:
        if number not in self.moves:
            raise Error(f"no move has the number {number}", helps=[f"the moves are {', '.join(map(str, self.moves))}"])
        return self.moves[number]

    def link(self, texts: Texts) -> None:
        """Links the moves with each other and with their further uses."""
        for number, text in self.texts.items():
            move = self.moves[number]
            if text.after is not None:
                move.before = self.named(text.after)
            if text.during is not None:
                host = self.named(text.during)
                if text.during < number:
                    move.during = host
                else:
                    move.trip_ahead = host
        for holder, (end, number) in texts.of(ReadAttr):
            self.named(number).uses.append(self.ends.use(holder, end))
        self.share(dict.fromkeys(text.together for text in self.texts.values() if text.together))

    def share(self, groups: Mapping[tuple[int, ...], None]) -> None:
        """Lets groups of moves share collectives."""
        for numbers in groups:
            moves = [self.named(number) for number in numbers]
            if (ways := joint([move.path for move in moves])) is None:
                raise Error(f"the moves {' '.join(map(str, numbers))} cannot share collectives", helps=["take `with ...` off"])
            for move, way in zip(moves, ways, strict=True):
                move.path, move.together = way, tuple(moves)
