"""The ways out of conflicts, tried for many conflicts at a time.

A trial makes a whole plan, which takes time that grows with the program. So one plan has a way out of each of many conflicts,
in parts of the program that share no values: there each costs what it would cost alone. Those of one part are tried one by one,
and so are all where ops may run elsewhere than claims say, because that is decided for the program as a whole, and all of a
plan on several device sets.

    a + a.T, b + b.T, ...   -->   one plan with the first way out of each, one with the second way out of each
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations, islice, zip_longest
from math import prod
from typing import NamedTuple

from ...dialects.ground.amounts import of_bytes, of_flops
from ...dialects.ground.errors import Error
from ...dialects.ranges.algebra import Place
from ...rewrites.decide import table as placement
from ...rewrites.decide.decide import first_use
from ...rewrites.decide.device_sets import along
from ...rewrites.decide.price import Price
from ...rewrites.decide.table import WHOLE, Key
from ...rewrites.program.breadth_first import reached
from ...rewrites.program.independent_parts import nodes_by_part, parts
from ...rewrites.program.program import Node, NodeId, ValueId
from ...rewrites.redistribute.kinds.halo import sharing
from ..cost.costs import Cost, cost, cost_of, price
from ..cost.memory import peak_bytes
from ..inputs.message_language import cited
from ..inputs.tactic_calls import Call
from ..plan.claims import Some, replicate, tile
from ..plan.history import redone
from ..plan.on_parts import name_of_op, on
from ..plan.refusals import Refused
from ..plan.state import State
from ..views.grouping import alike
from .open_conflicts import between_sets, is_of_sets, is_open, open_keys
from .tactic_edits import Change, PlanStep, attempted

FARTHEST = 16
"""How many values before a conflict, and ops after it, are searched for smaller values that could be gathered."""

MOST_VALUES = 8
"""The most values of an op, the smallest ones, that are tried alone and in pairs."""

MOST_WAYS = 5
"""The most ways out that a conflict of an axis lists."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """A way out of a conflict: a tactic, and what one device then receives, computes and stores.

    It is a tactic itself: `plan.apply(conflict.resolutions[0])`.
    """

    value: str | tuple[str, ...]
    """The value that is tiled or replicated, or the two values that are replicated; or the op that runs on a device set."""
    axis: str
    dim: int | None
    """The dim that is tiled; None if values are replicated."""
    where: tuple[tuple[str, int], ...]
    """The coordinates of the device set on which the op runs; empty of a conflict of an axis."""
    first: bool
    """Whether the values are replicated before all other tactics, so that these find them whole."""
    bytes: int
    """What a device receives in a call. In a plan on several device sets, one device of each, with what crosses."""
    flops: int
    crossing: int
    """The bytes of `bytes` that cross from one device set to another."""
    price: Price = field(repr=False)
    """What the plan then costs in a call. Ways out are compared by it, with each other and with the plan as it is."""
    stored: Callable[[], int] = field(repr=False, compare=False)
    step: PlanStep = field(repr=False, compare=False)
    """The tactic as a function of a plan."""

    @property
    def seconds(self) -> float:
        """An estimate of the time that a chip of the mesh takes for a call."""
        return self.price.seconds

    @property
    def memory(self) -> int:
        """The most bytes that a device stores at one time. Computing it takes a walk through the whole program."""
        return self.stored()

    @property
    def tactic(self) -> str:
        """The way out as a line of a trace."""
        if self.where:
            return str(Call("on", (self.value,), dict(self.where)))
        if self.dim is None:
            return f"replicate({self.value if isinstance(self.value, str) else [*self.value]!r}, {self.axis!r})"
        return f"tile({self.value!r}, {self.dim}, {self.axis!r})"

    def __call__(self, plan: Some) -> Some:
        return Change(self.step, plan.own if self.first else None, keeps=True)(plan)

    def __repr__(self) -> str:
        when = ", as the first tactic" if self.first else ""
        if self.where:
            crosses = f"{of_bytes(self.crossing)} then cross between device sets"
            takes = f"a call takes {1e6 * self.seconds:.3g} microseconds"
            return f"{cited(self.tactic)}: {crosses}, {takes}, and a device stores {of_bytes(self.memory)}"
        cost = (
            f"a device then receives {of_bytes(self.bytes)}, computes {of_flops(self.flops)} and stores {of_bytes(self.memory)}"
        )
        return f"{cited(self.tactic)}{when}: {cost}"


class Ways(NamedTuple):
    """The ways out of a conflict that can be applied, and the parts of the program in which they may change costs."""

    found: tuple[Resolution, ...]
    touched: frozenset[ValueId]


class _Way(NamedTuple):
    """A way out to try."""

    key: Key
    value: str | tuple[str, ...]
    dim: int | None
    step: PlanStep
    first: bool
    part: ValueId
    """The part of the program that it is about."""
    where: tuple[tuple[str, int], ...] = ()


class _Tried(NamedTuple):
    """A way out that can be applied: what the plan then costs, the parts that it is about, and what it stores."""

    way: _Way
    cost: Cost
    touched: frozenset[ValueId]
    stored: Callable[[], int]


# --- which are asked for ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Known:
    """A cache of what has been tried, and the number of conflicts to try together next."""

    ways: dict[Key, Ways] = field(default_factory=dict[Key, Ways])
    count: int = 1


def ways_out(plan: State, key: Key) -> tuple[Resolution, ...]:
    """The ways out of an open conflict.

    A caller may ask for one conflict only, but one who asks for a second may ask for all. So each trial covers twice as many
    conflicts as the one before.
    """
    known = plan.once(_nothing)
    if key not in known.ways:
        left = [each for each in open_keys(plan) if each not in known.ways]
        start = left.index(key)
        keys = left[start : start + known.count]
        known.ways |= (found := tried_ways_out(plan, keys))
        known.count = next_count(plan, known.count, found)
    return known.ways[key].found


def to_take(plan: State, ways: Sequence[Resolution]) -> Resolution | None:
    """The first of a conflict's ways out; None if there is none, or if it costs less to leave the conflict open."""
    return ways[0] if ways and ways[0].price <= price(plan) else None


def of_those_alike(plan: State, made: State, key: Key, way: Resolution) -> list[Change]:
    """The way out of a conflict of device sets, for those that are like it, and still open in the plan that it made."""
    alike = (each for each in between_sets(made) if _kind(plan, each) == _kind(plan, key[0])) if way.where else ()
    return [Change(partial(on, values=name_of_op(plan, each), where=dict(way.where))) for each in alike]


def _kind(plan: State, number: NodeId) -> Hashable:
    """What conflicts of device sets have in common that are alike: the op, its operands, where these are, and who reads it."""
    program, sets, node = plan.source.program, plan.table.sets, plan.source.program.nodes[number]
    assert sets is not None, "the plan has device sets"
    readers = frozenset(sets.ops[each.number] for value in node.results for each in program.readers(value))
    operands = [(program.types[value], sets.of(value)) for value in node.operands]
    return node.op_name, sets.ops[node.number], readers, *operands


def _nothing(plan: State) -> _Known:
    del plan
    return _Known()


def apart(ways: Mapping[Key, Ways]) -> list[Key]:
    """The conflicts whose ways out touch none of the values that those of an earlier conflict touch."""
    found, touched = list[Key](), set[ValueId]()
    for key, each in ways.items():
        if touched.isdisjoint(each.touched):
            found.append(key)
        touched |= each.touched
    return found


def next_count(plan: State, count: int, ways: Mapping[Key, Ways]) -> int:
    """The number of conflicts to try together next: twice as many, unless most of these conflicts touched others.

    Those of a plan on several device sets are tried one by one in any case.
    """
    if plan.table.sets is not None:
        return 1
    return 2 * count if 2 * len(apart(ways)) >= len(ways) else 1


def tried_ways_out(plan: State, keys: Sequence[Key]) -> dict[Key, Ways]:
    """Tries the ways out of these conflicts, and returns them, the fastest first. Of several with equal costs, one is kept.

    That each device runs the op in full, as it does while the conflict is open, is a way out where all others take longer.
    """
    tried: dict[Key, list[_Tried]] = {key: [] for key in keys}
    found = dict[Key, Ways]()
    for ways_of in (_ways, _in_full):
        left = [key for key in keys if key not in found or to_take(plan, found[key].found) is None]
        for ways in zip_longest(*(ways_of(plan, key) for key in left)):
            for each in _outcomes(plan, [way for way in ways if way is not None]):
                tried[each.way.key].append(each)
        found |= {key: _best(plan, tried[key]) for key in left}
    return found


def _best(plan: State, found: Sequence[_Tried]) -> Ways:
    made = [
        Resolution(
            way.value,
            ", ".join(plan.mesh.apart) if way.where else str(way.key[2]),
            way.dim,
            way.where,
            way.first,
            cost.bytes,
            cost.flops,
            cost.over(plan.mesh.apart),
            price(plan, cost),
            stored,
            way.step,
        )
        for way, cost, _, stored in found
    ]
    made.sort(key=lambda each: (each.price, each.first))
    shown = tuple({(each.bytes, each.flops, each.where): each for each in reversed(made)}.values())[::-1]
    # Each device set is one.
    shown = tuple(each for number, each in enumerate(shown) if number < MOST_WAYS or each.where)
    return Ways(shown, frozenset[ValueId]().union(*(each.touched for each in found)))


# --- trials ------------------------------------------------------------------------------------------------------------------


def _outcomes(plan: State, ways: Iterable[_Way]) -> Iterator[_Tried]:
    """Yields the outcome of each of these ways out, taken alone. They belong to different conflicts.

    Refused ones are left out.
    """
    for some in zip_longest(*alike(ways, lambda way: way.part)):
        yield from _tried_together(plan, [way for way in some if way is not None])


def _tried_together(plan: State, ways: Sequence[_Way]) -> Iterator[_Tried]:
    """The outcome of each of these ways, tried in one plan. If that is refused, or they interfere, each half is tried alone."""
    if not ways:
        return
    together, settled = _all_taken(plan, ways), set[Key]()
    if together is None and len(ways) == 1:
        return
    if together is not None:
        made, ways = together
        for each in _singly(plan, made, ways):
            settled.add(each.way.key)
            if not is_open(made, each.way.key):
                yield each
    left = [way for way in ways if way.key not in settled]
    for half in (left[::2], left[1::2]):
        yield from _tried_together(plan, half)


def _all_taken(plan: State, ways: Sequence[_Way]) -> tuple[State, Sequence[_Way]] | None:
    """The plan with all of these ways out, except those that get in the way of a tactic; None if it is refused."""
    first, after = ([way for way in ways if way.first == is_first] for is_first in (True, False))
    made = plan
    try:
        while first:
            try:
                made = redone(plan, plan.own, [way.step for way in first], keeps=True)
                break
            except Refused as error:
                # A tactic makes all its claims at once, and names all of the values that it does not find free.
                taken = {each.have.tactic - plan.own for each in error.among if each.have is not None}
                left = [way for number, way in enumerate(first) if number not in taken]
                if len(left) == len(first):
                    return None
                first = left
        for way in after:
            made = way.step(made)
    except Error:
        return None
    return made, [*first, *after]


def _singly(plan: State, made: State, ways: Sequence[_Way]) -> Iterator[_Tried]:
    """Of ways out taken together, those that share no part of the program with others, each with its cost alone."""
    before = plan.once(_by_part)
    # What shares a part in the plan as it is does so in the one that is made, too, for which all had to be decided.
    if all(others for _, *others in alike(ways, lambda way: -1 if way.part in before.sharing else way.part)):
        return
    after = made.once(_by_part)
    shared, nothing = before.sharing | after.sharing, cost_of(plan, (), ())
    for way, *others in alike(ways, lambda way: -1 if way.part in shared else way.part):
        if others:
            continue
        touched = shared if way.part in shared else frozenset((way.part,))
        now, stored = cost(made), cache(partial(peak_bytes, made))
        if len(ways) > 1:
            now, stored = cost(plan), cache(partial(_stored, plan, way))
            for part in touched:
                now = now.instead(before.costs.get(part, nothing), after.costs.get(part, nothing))
        yield _Tried(way, now, touched, stored)


class _ByPart(NamedTuple):
    """The cost of a plan by parts of the program; parts that may share collectives, or are decided together, are joined."""

    costs: Mapping[ValueId, Cost]
    sharing: frozenset[ValueId]


def _by_part(plan: State) -> _ByPart:
    program = plan.source.program
    part, end = parts(program), program.end
    if plan.table.sets is not None or plan.decisions.weighed:
        # Then all is one part, and no cost of a part is asked for.
        return _ByPart({}, frozenset(part))
    moves, nodes = plan.decisions.by_part(), nodes_by_part(program)
    costs = {each: cost_of(plan, moves.get(each, ()), nodes.get(each, ())) for each in {**moves, **nodes}}
    # Redistributions of results that no op reads can be made at one time, whatever part they are of.
    last = (move for move in plan.decisions.moves if first_use(move)[0] == end)
    return _ByPart(costs, frozenset(part[move.value] for move in last if move.together or sharing(move.path) is not None))


def _stored(plan: State, way: _Way) -> int:
    """The most bytes that a device stores at one time with this way out alone."""
    made = _all_taken(plan, [way])
    assert made is not None, "it was taken together with others"
    return peak_bytes(made[0])


# --- what is tried -----------------------------------------------------------------------------------------------------------


def _ways(plan: State, key: Key) -> Iterator[_Way]:
    """Yields the ways out to try for a conflict. Those that are refused at once, or leave it open, are left out."""
    if is_of_sets(plan, key):
        yield from (way for way in _on_sets(plan, key) if _helps(plan, way))
        return
    each = plan.table.conflicts[key]
    alone = _replicable(plan, each)
    several = [*((value,) for value in alone), *combinations(alone, 2)]
    tried = [(some, None, first) for some in several for first in (False, True)]
    tried += [((value,), dim, False) for value, dim in _tileable(plan, each)]
    yield from (way for some in tried if _helps(plan, way := _way(plan, each, *some)))


def _on_sets(plan: State, key: Key) -> Iterator[_Way]:
    """Yields the ways out by which an op runs on one of the device sets that hold operands of it, or where it runs now."""
    sets = plan.table.sets
    assert sets is not None, "the plan has device sets"
    name, part = name_of_op(plan, key[0]), parts(plan.source.program)[plan.source.program.nodes[key[0]].main]
    for devices in dict.fromkeys([*(each.on for each in between_sets(plan)[key[0]].values()), sets.ops[key[0]]]):
        where = along(devices)
        yield _Way(key, name, None, partial(on, values=name, where=where), False, part, tuple(where.items()))


def _in_full(plan: State, key: Key) -> Iterator[_Way]:
    """Yields the way out by which each device runs the op in full."""
    if is_of_sets(plan, key):
        return
    each = plan.table.conflicts[key]
    node = node_of(plan, each)
    if node is not None and _helps(plan, way := _way(plan, each, node.results, None, False)):
        yield way


def _way(plan: State, each: placement.Clash, values: Sequence[ValueId], dim: int | None, first: bool) -> _Way:
    names, axis, node = [plan.source.addresses.names[value] for value in values], str(each.axis), node_of(plan, each)
    if dim is None:
        step = partial(replicate, values=names if len(names) > 1 else names[0], axis=axis)
    else:
        step = partial(tile, values=names[0], dim=dim, axis=axis)
    part = parts(plan.source.program)[each.value if node is None else node.main]
    key = each.node, each.value, each.axis
    return _Way(key, tuple(names) if len(names) > 1 else names[0], dim, step, first, part)


def _helps(plan: State, way: _Way) -> bool:
    """Whether a way out can be applied after all tactics, and ends the conflict. This is quick to check."""
    return way.first or ((made := attempted(plan, way.step)) is not None and not is_open(made, way.key))


def node_of(plan: State, each: placement.Clash) -> Node | None:
    """The op at which the claims meet; None if they meet at an argument."""
    return plan.source.program.nodes[each.node] if each.node >= 0 else None


def _tileable(plan: State, each: placement.Clash) -> list[tuple[ValueId, int]]:
    """The dims that the axis could tile: those claimed of an argument, or those of the op's results."""
    node = node_of(plan, each)
    if node is None:
        return list(dict.fromkeys((each.value, claim.at) for claim, _ in each.claims))
    return [(value, dim) for value in node.results for dim in range(len(plan.source.program.shape(value)))]


def _replicable(plan: State, each: placement.Clash) -> list[ValueId]:
    """Values that could be replicated along the axis: those of the claims, and smaller ones from which the claims come."""
    node = node_of(plan, each)
    if node is None:
        return [each.value]
    found: list[ValueId] = []
    for value in (value for value in node.operands if _is_tiled(plan, value, each.axis)):
        found += [value, *_smallest(plan, value, _before(plan, value, each.axis))]
    for value in (node.end(position) for _, position in each.claims if position < 0):
        found += _smallest(plan, value, _behind(plan, value, each.axis))
    smallest = sorted(dict.fromkeys(found), key=lambda value: prod(plan.source.program.shape(value)))[:MOST_VALUES]
    return [value for value in dict.fromkeys(found) if value in smallest]


def _smallest(plan: State, value: ValueId, others: Iterator[ValueId]) -> list[ValueId]:
    """The smallest of these values, if it is smaller than `value`: gathering keys is cheaper than gathering scores."""
    sizes = {each: prod(plan.source.program.shape(each)) for each in others}
    found = [each for each, size in sizes.items() if size < prod(plan.source.program.shape(value))]
    return [min(found, key=lambda each: sizes[each])] if found else []


def _before(plan: State, value: ValueId, axis: Place) -> Iterator[ValueId]:
    """Yields the values with a claim on the axis from which `value` is computed, the nearest first."""
    made_of = plan.source.program.made_of
    return islice(reached([value], lambda each: (v for v in made_of(each) if _is_tiled(plan, v, axis))), 1, FARTHEST)


def _behind(plan: State, value: ValueId, axis: Place) -> Iterator[ValueId]:
    """Yields values with a claim on the axis that later ops read together with `value`, or with what follows from it."""
    program, ahead, seen = plan.source.program, [value], set[NodeId]()
    for each in ahead:
        for node in program.readers(each):
            if node.number not in seen and len(seen) < FARTHEST:
                seen.add(node.number)
                ahead += node.results
                yield from (operand for operand in node.operands if operand not in ahead and _is_tiled(plan, operand, axis))


def _is_tiled(plan: State, value: ValueId, axis: Place) -> bool:
    claim = plan.table.claim(value, axis)
    return claim is not None and claim.at != WHOLE
