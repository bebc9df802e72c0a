"""Conflicts: claims that cannot all hold at one op. The ways out of a conflict are tried, and shown with their costs.

a + a.T, `a` tiled on 0                     -->   tile('add#0', 0, 'data'), tile('add#0', 1, 'data'), replicate('a', 'data')
a + b, `a` on stage=0 and `b` on stage=1    -->   on('add#0', stage=0), on('add#0', stage=1)
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.ground.amounts import counted, of_bytes, of_flops
from ...dialects.ground.errors import Error
from ...dialects.ranges.algebra import Place
from ...rewrites.decide import table as placement
from ...rewrites.decide.device_sets import coordinates
from ...rewrites.decide.table import Key
from ...rewrites.program.program import NodeId, ValueId
from ..cost.costs import cost
from ..cost.device_sets import crossing_bytes
from ..cost.flops import shown_op_name
from ..inputs.checks import refused, shown
from ..inputs.lines import SourceLine, at_line
from ..inputs.message_language import Question, explained, question, step
from ..plan.claims import Some
from ..plan.source_lines import line_of, line_of_op
from ..plan.state import State
from ..views.listing import Listing, ListingForm
from .open_conflicts import between_sets, is_of_sets, is_open, open_keys
from .ways_out import Resolution, node_of, ways_out


@dataclass(frozen=True)
class Conflict:
    """Claims that contradict each other at one op, about an axis or about the device set on which it runs.

    Without a resolution, each device of the axis runs the op in full; of several sets, the one to which the fewest bytes cross
    runs it.
    """

    plan: State
    op: str
    axis: str
    source: SourceLine | None
    claims: tuple[str, ...]
    tactics: tuple[int, ...]
    """The tactic of each claim, counted from 1 as in `plan.trace`."""
    key: Key

    @property
    def resolutions(self) -> tuple[Resolution, ...]:
        """The ways out that can be applied, the fastest first. Of several with equal costs, only one is listed.

        Each is tried, so each has the plan's resulting cost.
        """
        return ways_out(self.plan, self.key)

    @property
    def left_open(self) -> str:
        """What a device receives and computes if the conflict stays open, or what crosses; and how the op runs then."""
        if is_of_sets(self.plan, self.key):
            sets, crossing = self.plan.table.sets, of_bytes(crossing_bytes(self.plan))
            assert sets is not None, "the plan has device sets"
            where = coordinates(sets.ops[self.key[0]])
            return f"left open: {crossing} cross between device sets. It runs on {where}, where the fewest bytes cross"
        now, each = cost(self.plan), self.plan.table.conflicts[self.key]
        received, computed = of_bytes(now.bytes), of_flops(now.flops)
        costs = f"a device receives {received} and computes {computed}"
        if self.plan.table.sets is not None:
            costs = f"one device of each set, together, receive {received} and compute {computed}"
        return f"left open: {costs}. {_while_open(self.plan, each)}"

    def __repr__(self) -> str:
        return f"conflict on `{self.axis}` in {self.op}{at_line(self.source)}: " + "; ".join(self.claims)


def resolve(plan: Some, conflict: Conflict, choice: int | str | Resolution = 0) -> Some:
    """Takes a way out of a conflict: `choice` is one of `.resolutions`, its number, or its tactic."""
    ways = its_own(plan, conflict).resolutions
    plain = isinstance(choice, int | str | Resolution) and not isinstance(choice, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    chosen = [way for number, way in enumerate(ways) if plain and choice in (number, way.tactic, way)]
    if not chosen:
        known = ", ".join(f"{number}: {way.tactic}" for number, way in enumerate(ways)) or "none: no tactic resolves it alone"
        raise Error(f"{shown(choice)} is not a way out of this conflict", helps=[f"the ways out are {known}"])
    return chosen[0](plan)


def conflict_given(conflict: object) -> Conflict:
    """Checks that the argument is a conflict. Raises Error otherwise."""
    if not isinstance(conflict, Conflict):
        helps = ["take one of plan.conflicts: plan.resolve(plan.conflicts[0])", "to resolve all: plan.apply(pt.Resolve())"]
        raise refused("conflict", "a conflict", conflict, *helps)
    return conflict


def its_own(plan: State, conflict: Conflict) -> Conflict:
    """Checks that a conflict is an open one of this plan, and returns it. Raises Error otherwise."""
    if conflict.plan.source is not plan.source or not is_open(plan, conflict.key):
        helps = ["take one of plan.conflicts", "a tactic that came after it may have resolved it"]
        raise Error(f"this is not an open conflict of this plan: {conflict!r}", helps=helps)
    return conflict


def conflicts(plan: State) -> Listing[Conflict]:
    """The open conflicts: those at which no later tactic has placed the op, or the argument, on the axis."""
    return Listing([conflict(plan, key) for key in open_keys(plan)], ListingForm("open conflicts", notes=_ways))


def _ways(found: Sequence[Conflict]) -> Sequence[str]:
    """The line below a list of conflicts. It says how to see the ways out of the first one."""
    first = found[0]
    return [f"{explained(open_keys(first.plan)[first.key])} shows the ways out of the first one"]


def met_at(plan: State, node: NodeId, value: ValueId, axis: Place) -> str:
    """Describes the open conflict at an op or argument: its claims, and how to see its ways out; empty if there is none."""
    key = node, value, axis
    number = open_keys(plan).get(key)
    if number is None:
        return ""
    claims = "; ".join(conflict(plan, key).claims)
    return f"a conflict on `{axis}`: {claims}; {explained(number)} shows the ways out"


def warning(plan: State) -> str | None:
    """The warning before a plan runs of which open conflicts make devices compute too much; None if there are none."""
    found = [key for key in plan.table.conflicts if is_open(plan, key)]
    if not found:
        return None
    first = plan.table.conflicts[found[0]]
    op, source = _where(plan, first)
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    resolve, ways = question(Question.RESOLVE), question(Question.WAYS)
    help = f"Apply {resolve}, or one of {ways}"
    if _in_parts(plan, first):
        help = f"{resolve} takes a way out only if that costs no more; {ways} lists them"
    return f"a plan with open conflicts: {op}{at_line(source)}{more}. {_while_open(plan, first)}. {help}"


def _in_parts(plan: State, each: placement.Clash) -> bool:
    """Whether the plan itself runs the op of an open conflict in parts on its axis, because that costs less."""
    node, axes = node_of(plan, each), plan.decided.mesh.split(each.axis)
    return node is not None and not plan.decisions.placements.axes(node).isdisjoint(axes)


def _while_open(plan: State, each: placement.Clash) -> str:
    """How an op runs, or an argument is stored, while its conflict is open."""
    if _in_parts(plan, each):
        return f"It runs in parts on `{each.axis}` all the same"
    return f"Each device of `{each.axis}` {'runs' if each.node >= 0 else 'stores'} it in full"


def conflict(plan: State, key: Key) -> Conflict:
    """Describes a conflict of the plan's table in the user's terms."""
    if is_of_sets(plan, key):
        return _of_sets(plan, key)
    each = plan.table.conflicts[key]
    op, source = _where(plan, each)
    tactics = tuple(claim.tactic + 1 for claim, _ in each.claims)
    return Conflict(plan, op, str(each.axis), source, claims_text(plan, each), tactics, key)


def _of_sets(plan: State, key: Key) -> Conflict:
    """Describes a conflict about the device set of an op: where its operands are, and how large they are."""
    program, names, read = plan.source.program, plan.source.addresses.names, between_sets(plan)[key[0]]
    sizes = {value: counted(program.types[value].nbytes, "byte") for value in read}
    claims = tuple(f"operand `{names[value]}` is on {coordinates(each.on)} ({sizes[value]})" for value, each in read.items())
    node, tactics = program.nodes[key[0]], tuple(each.tactic + 1 for each in read.values())
    op = node.op.name.removeprefix("lax.") if node.is_border else shown_op_name(node)
    return Conflict(plan, f"`{op}`", ", ".join(plan.mesh.apart), line_of_op(plan, node), claims, tactics, key)


def claims_text(plan: State, each: placement.Clash) -> tuple[str, ...]:
    """The claims of a conflict in text, each with its value and its tactic; with the blocks, if only these differ."""
    indices = [_index(plan, each, claim, position) for claim, position in each.claims]
    along = [*zip(indices, each.claims, strict=True)]
    blocks = Counter[int | None](at for at, _ in {(at, claim.factor.stride) for at, (claim, _) in along if at is not None})
    return tuple(
        _claim(plan, each, claim, position, f", in blocks of {claim.factor.stride}" if blocks[at] > 1 else "")
        for at, (claim, position) in along
    )


def _index(plan: State, each: placement.Clash, claim: placement.Claim, position: int) -> int | None:
    """The index of an op that a claim would place."""
    node = node_of(plan, each)
    if node is None:
        return None
    return next((at for at, place in node.signature.places_of(position).items() if place.dim == claim.at), None)


def out_of_order(plan: State) -> str | None:
    """What to do about the first open conflict at a weight of which a tactic has tiled a dim that an earlier one had tiled.

    FSDP("data"), then Megatron("model"): rows of `w2` are `data*model*64`, and those of `x @ w1` are `model*256`
    """
    table, program = plan.table, plan.source.program
    for each in (table.conflicts[key] for key in open_keys(plan) if key in table.conflicts):
        for claim, position in each.claims if each.node >= 0 else ():
            value = program.source(program.nodes[each.node].end(position))
            if program.producer[value] >= 0 or (own := table.claim(value, each.axis)) is None:
                continue
            others = ((axis, other) for axis in table.axes if (other := table.claim(value, axis)) is not None)
            for axis, other in others:
                if other.at == own.at and other.tactic < own.tactic == claim.tactic and other.tactic >= plan.own:
                    name, texts = plan.source.addresses.names[value], [plan.actions[n].text for n in (own.tactic, other.tactic)]
                    where = f"dim {own.at} of `{name}` is in blocks on `{axis}` by tactic {other.tactic + 1}"
                    return f"{where}: apply tactic {own.tactic + 1} before it, {step(*texts)}"
    return None


def _where(plan: State, each: placement.Clash) -> tuple[str, SourceLine | None]:
    """The op or argument at which the claims meet, and its source line."""
    node = node_of(plan, each)
    if node is None:
        return f"argument `{plan.source.addresses.names[each.value]}`", line_of(plan, each.value, None)
    return f"`{node.op_name}`", line_of(plan, node.results[0], node)


def _claim(plan: State, each: placement.Clash, claim: placement.Claim, position: int, blocks: str) -> str:
    node = node_of(plan, each)
    value = each.value if node is None else node.end(position)
    who = f"operand {position}" if position >= 0 else f"result {-1 - position}"
    who = f"a use of dim {claim.at}" if node is None else who
    by = "from" if node is None or value in plan.actions[claim.tactic].values else "propagated from"
    return f"{who} `{plan.source.addresses.names[value]}` on dim {claim.at}{blocks}, {by} {plan.cited(claim.tactic)}"
