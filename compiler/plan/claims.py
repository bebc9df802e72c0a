"""Claims: the placements that a tactic asks for. All of them are checked before any is made; then they are propagated.

An action changes a plan or fails with a reason. It never applies partially, because it works on a copy of the table.

    tile(plan, "x", 0, "data")    -->    the plan with x: f32[data*64, 8], and everything that follows by propagation
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TypeVar, cast

from ...dialects.definitions.tilings import SubIndex, SubIndices
from ...dialects.ground.errors import Error
from ...dialects.lax import ScanOp, WhileOp
from ...dialects.mesh import Mesh
from ...dialects.ranges.algebra import Loop, Place
from ...dialects.ranges.factor import Factor
from ...rewrites.decide.in_trips import loops_of
from ...rewrites.decide.propagate import propagate as carry
from ...rewrites.decide.table import WHOLE, Claim, Table, claim_layout, next_factor
from ...rewrites.program.breadth_first import reached
from ...rewrites.program.program import Node, NodeId, Program, Signatures, ValueId
from ...rewrites.program.shard_maps import own_claims
from ..gc_pause import without_collector
from ..inputs.checks import Axes, axes_of, block_of, checked_axis, dim_number, flag_of, no_axis, range_name, shown
from ..inputs.message_language import step
from ..inputs.names import Patterns
from ..inputs.tactic_calls import Call
from ..trace.trace import Traced
from .refusals import (
    Refused,
    already_claimed,
    claims_elsewhere,
    kept_whole,
    no_place,
    not_in_turn,
    not_widened,
    too_wide,
    uneven_claim,
    widened_late,
)
from .seeds import Seed, SeedOn
from .state import Action, State

Some = TypeVar("Some", bound=State)
"""A plan of any class. Functions return a plan of the same class."""


def tile(
    plan: Some,
    values: Patterns,
    dim: int | str,
    axis: Axes,
    *,
    propagate: bool = True,
    held: bool = False,
    padded: bool = False,
    block: int | None = None,
    backward: bool = True,
) -> Some:
    """Claims a dim of these values on mesh axes, major to minor, and propagates. `Plan.tile` describes it."""
    dim = dim_number(dim)
    if isinstance(dim, str) and dim not in plan.range_roots:
        no_axis(plan.mesh, values, dim, axis)
    if axis == "":
        helps = [f"write {step(f'tile({shown(values)}, {dim!r}, ...)')}; the mesh is {plan.mesh}"]
        raise Error("`tile` needs `axis`, the mesh axis that tiles the dim", helps=helps)
    padded, block = flag_of("padded", padded), block_of(block, padded)
    backward, axes = flag_of("backward", backward), axes_of(axis)
    plan = having(plan, axes)
    said = {"propagate": (propagate, True), "held": (held, False), "padded": (padded, False), "block": (block, None)}
    said |= {"backward": (backward, True)}
    on = axis if isinstance(axis, str) else axes
    more = {name: given for name, (given, default) in said.items() if given != default}
    named = plan.names(values, dim).items()
    seed = partial(Seed, axis="", padded=padded, block=block, at_uses=not backward)
    seeds = [seed(value, plan.dim_of(value, dim, name), name=name) for name, value in named]
    seeds = [each for seed in seeds for each in seed.over(axes, plan.mesh)]
    given = {name: given for name, (given, _) in said.items()}
    made = place(plan, seeds, str(Call("tile", (values, dim, on), more)), propagate=propagate, held=held)
    return made.by(partial(tile, values=values, dim=dim, axis=on, **given))


def replicate(plan: Some, values: Patterns, axis: Axes, *, propagate: bool = True) -> Some:
    """Claims to keep these values replicated along axes. Propagation does not cross them."""
    axes = axes_of(axis)
    on = axis if isinstance(axis, str) else axes
    text = str(Call("replicate", (values, on), {} if propagate else {"propagate": False}))
    named = plan.source.addresses.find(values).items()
    made = place(plan, [Seed(value, None, each, name) for name, value in named for each in axes], text, propagate=propagate)
    return made.by(partial(replicate, values=values, axis=on, propagate=propagate))


def widen(plan: Some, values: Patterns) -> Some:
    """Marks values to be computed in the windows in which they are read.

    The ops that compute them, back to ops that read through a window themselves, are marked too.
    """
    program, named, found = plan.source.program, plan.source.addresses.find(values), set[ValueId]()
    ahead = list(named.values())
    while ahead:
        value = ahead.pop()
        number = program.producer[value]
        if number < 0 or value in found or program.nodes[number].is_border:
            continue
        found.add(value)
        node = program.nodes[number]
        if not node.signature.rivals or node.signature.definition.moves:
            ahead += node.operands
    # What ops that only move elements make of these follows too.
    widened = set(program.downstream(found, _is_moving))
    if not any(node.signature.rivals for value in widened for node in program.readers(value)):
        raise not_widened(next(iter(named)), is_computed=bool(found))
    for name, value in named.items():
        for axis in plan.table.axes:
            claim = plan.table.claim(value, axis)
            if claim is not None and claim.at != WHOLE and not claim.factor.has_halo and _is_windowed(program, value, claim):
                raise widened_late(plan, name, value, axis, claim)
    table = plan.table.copy()
    table.widened |= widened
    idle = table.widened == plan.table.widened
    action = Action(str(Call("widen", (values,))), "widen", idle=idle, redo=partial(widen, values=values))
    return acted(plan, action, table)


def each_trip(plan: Some, values: Patterns) -> Some:
    """Marks values to be sent in each trip of loops, instead of once: arguments, with the sums that update them, and sums."""
    program, named = plan.source.program, plan.source.addresses.find(values)
    if plan.mesh.loops:
        read = {*named.values(), *(each for name in named for each in _updates(plan, name))}
    else:
        read = {value for value in named.values() if program.producer[value] < 0 and _enters_loop(program, value)}
    if not read:
        name, value = next(iter(named.items()))
        why = "it is computed" if program.producer[value] >= 0 else "no loop reads it as it is"
        helps = ["name an argument that a loop reads, as `params/**`", "place this after the tactic that makes a loop"]
        raise Error(f"`{name}` cannot be gathered in each trip: {why}", helps=helps)
    table = plan.table.copy()
    table.each_trip |= read
    idle = table.each_trip == plan.table.each_trip or not any(_is_sent(plan, value) for value in read)
    action = Action(str(Call("each_trip", (values,))), "each_trip", idle=idle, redo=partial(each_trip, values=values))
    return acted(plan, action, table)


def _is_sent(plan: State, value: ValueId) -> bool:
    """Whether a value may be sent in each trip: a loop of the program reads it, or all trips of a loop do, or add to it."""
    placements, program = plan.decisions.placements, plan.source.program
    if program.producer[value] < 0:
        moved = program.downstream([value], attrgetter("passes_on"))
        uses = ((each, use) for each in moved for use in program.uses[each])
        return _enters_loop(program, value) or any(loops_of(placements, each, [use]) for each, use in uses)
    return any(isinstance(each.axis, Loop) for each in placements.sources.get(value, ()))


def _updates(plan: State, name: str) -> Iterator[ValueId]:
    """The values from which the next value of an argument is computed element by element, its gradient among them."""
    source, after = plan.source, plan.source.traced.successors.get(name)
    if after is None:
        return
    dims, program = source.classes.dims, source.program
    own = dims(source.addresses.arguments[name])
    made_of = reached([source.addresses.results[after]], lambda each: program.made_of(each) if dims(each) == own else ())
    yield from (value for value in made_of if program.producer[value] >= 0 and dims(value) == own)


def _enters_loop(program: Program, value: ValueId) -> bool:
    """Whether a loop reads the value, the same in all trips, perhaps after ops that only move it."""
    moved = program.downstream([value], attrgetter("passes_on"))
    readers = (node for each in moved for node in program.readers(each))
    return any(node.op_name == "enter" and isinstance(node.op, ScanOp | WhileOp) for node in readers)


def _is_moving(node: Node) -> bool:
    return node.signature.instance.moves or node.signature.shifts


def _is_windowed(program: Program, value: ValueId, claim: Claim) -> bool:
    """Whether a use reads the claimed dim through a window that does not match the claim's blocks."""
    digits = (digit for node, position in program.reads(value) for digit in node.signature.operand_dims[position][claim.at])
    return any(digit.reach is not None and digit.reach.outward(claim.factor) is not claim.factor for digit in digits)


def name(plan: Some, values: Patterns, dim: int, label: str) -> Some:
    """Names the range of a dim of these values. Raises Error if they have different ranges, or if the name is taken."""
    label = range_name(label)
    of = plan.source.classes.of
    roots = {name: of(value, plan.dim_of(value, dim, name)) for name, value in plan.source.addresses.find(values).items()}
    (first, root), *_ = roots.items()
    if other := next((name for name, its in roots.items() if its != root), None):
        title = f"`{label}` can name only one range, but dim {dim} of `{first}` and of `{other}` are different ranges"
        raise Error(title, helps=["name them one by one, with different names"])
    if plan.labels.get(label, root) != root and plan.label(label) != root:
        title = f"`{label}` already names the range of {plan.dim_with(label)}; dim {dim} of `{first}` is another range"
        raise Error(title, helps=["use another name for it"])
    redo = partial(name, values=values, dim=dim, label=label)
    action = Action(str(Call("name", (values, dim, label))), "name", redo=redo)
    return acted(replace(plan, labels={**plan.labels, label: root}), action)


def propagate(plan: Some, axis: str, *, split: bool = False) -> Some:
    """Propagates claims along an axis that were made with `propagate=False`; with `split`, also across reshapes."""
    split = flag_of("split", split)
    text = str(Call("propagate", (axis,), {"split": True} if split else {}))
    plan = having(plan, (checked_axis(axis),))

    def carried(table: Table) -> Table:
        table = table.copy()
        for part in plan.mesh.named(axis):
            if part.size > 1:
                table.touch(part)
                carry(table, part, _claimed_values(table, part), len(plan.actions), False)
        return table

    is_loop = any(isinstance(part, Loop) for part in plan.mesh.named(axis))
    table = carried(plan.table) if is_loop else on_axes(plan, None, carried)
    action = Action(text, "place", again=axis, redo=partial(propagate, axis=axis, split=split))
    made = acted(plan, action, table)
    return crossing(made, axis) if split else made


def having(plan: Some, axes: Iterable[str]) -> Some:
    """Returns the plan on a mesh that has these axes. A sub-axis `data.0:2` that is named first splits `data` in two.

    What was placed on `data` is then placed on both, and propagates further on each where it could not on `data`.
    """
    mesh, axes = plan.mesh, [*axes]
    if problem := no_place(plan, axes):
        raise problem
    for axis in axes:
        mesh = mesh.having(checked_axis(axis))
    if mesh is plan.mesh:
        return plan
    for axis in (axis for axis in plan.mesh.places if axis not in mesh.places):
        if problem := kept_whole(plan, axis):
            raise problem
    with without_collector():
        return refined(plan, mesh, len(plan.actions))


def refined(plan: Some, mesh: Mesh, number: int) -> Some:
    """Moves the plan to a refined mesh: claims on split axes become claims on their sub-axes, and are propagated."""
    split = {axis: mesh.split(axis) for axis in plan.mesh.places if axis not in mesh.places}

    def carried(table: Table) -> Table:
        table = table.refined(split)
        for part in (part for part in table.axes if part not in plan.mesh.places):
            again = any(str(part) in mesh.parts(action.again, ()) for action in plan.actions)
            claimed = _claimed_values(table, part).items()
            free = [value for value, claim in claimed if again or plan.actions[claim.tactic].propagate]
            carry(table, part, free, number)
        return table

    made = replace(plan, mesh=mesh)
    return replace(made, table=on_axes(made, None, carried) if split else carried(plan.table))


def crossing(plan: Some, axis: str) -> Some:
    """Splits an axis into sub-axes, if propagation stopped at a reshape where each sub-axis can take an index of its own.

    16, data at 2 (8 devices), reshaped to 4, 4   -->   data.0:4 on the first dim, data.1:2 on the second
    """
    ways: dict[tuple[int, ...], list[NodeId]] = {}
    for stop in plan.table.blocked.values():
        if stop.axis.name == axis and (sizes := plan.table.ways_across(stop)):
            ways.setdefault(sizes, []).append(stop.node)
    for sizes, nodes in ways.items():
        mesh = plan.mesh.refine(**{axis: sizes})
        split = refined(plan, mesh, len(plan.actions) - 1)
        tables = [split.table.axes[part] for part in mesh.named(axis)]
        if any(all(table.nodes[node] is not None for table in tables) for node in nodes):
            return split
    return plan


def _claimed_values(table: Table, axis: Place) -> dict[ValueId, Claim]:
    """The values with a claim on the axis."""
    found = ((value, table.claim(value, axis)) for value in table.program.values)
    return {value: claim for value, claim in found if claim is not None}


def place(plan: Some, seeds: Sequence[Seed], text: str, *, propagate: bool = True, held: bool = False) -> Some:
    """Makes these claims, all at once, and propagates them. `Plan.place` describes it."""
    propagate, held = flag_of("propagate", propagate), flag_of("held", held)
    seeds = wanted(plan, seeds, text)
    redo = partial(place, seeds=seeds, text=text, propagate=propagate, held=held)
    plan, seeds = on_parts(plan, [each for seed in seeds for each in (at_uses(plan, seed) if seed.at_uses else [seed])])
    in_loops = tuple(seed for seed in seeds if isinstance(seed.place, Loop))
    action = Action(text, "place", dict.fromkeys(seed.value for seed in seeds), propagate, held, redo=redo, in_loops=in_loops)
    with without_collector():
        table = _claimed(plan, seeds, action)
    return acted(plan, replace(action, idle=is_same(plan.table, table)), table)


def acted(plan: Some, action: Action, table: Table | None = None) -> Some:
    """The plan with one more action, and with the table that it made."""
    return replace(plan, table=table or plan.table, actions=(*plan.actions, action))


def on_parts(plan: Some, seeds: Sequence[Seed]) -> tuple[Some, list[SeedOn]]:
    """Returns the plan on the mesh that has the claims' axes, and the claims on the sub-axes of that mesh."""
    plan = having(plan, dict.fromkeys(seed.axis for seed in seeds))
    return plan, [part for seed in seeds for part in seed.parts(plan.mesh)]


def at_uses(plan: State, seed: Seed) -> Iterator[Seed]:
    """The claims that place a dim of a value where it is read, and leave alone what makes it, and what its gradient leads to.

    ```
    tile h.0, of %l = dot %h %w   -->   h whole, grad(h) whole, l: f32[t:8*16, 512]
    ```
    """
    program, dim = plan.source.program, cast(int, seed.dim)
    addresses, found = plan.source.addresses, dict[ValueId, int]()
    for value in (seed.value, *addresses.gradients_of(seed.name)):
        yield replace(seed, value=value, name=addresses.name(value), dim=None)
    for node, position in program.reads(seed.value):
        # Of a dim that is split or merged, the major part has the blocks of the dim.
        for value, at in led_by(node.signature.operand_dims[position][dim], node.results, node.signature.result_dims):
            found.setdefault(value, at)
    size = seed.multiple or plan.mesh[seed.axis]
    # What reads only a part of the dim may not divide: it is left whole if others do.
    fits = {value: at for value, at in found.items() if seed.padded or program.shape(value)[at] % size == 0}
    for value, at in (fits or found).items():
        yield replace(seed, value=value, name=addresses.name(value), dim=at)
    if not found:
        helps = ["tile a value that is computed from it", "or leave out `backward=False`"]
        raise Error(f"no op that reads `{seed.name}` leaves its dim {dim} in what it makes", helps=helps)


def led_by(digits: Sequence[SubIndex], values: Sequence[ValueId], dims: Sequence[SubIndices]) -> Iterator[tuple[ValueId, int]]:
    """The dims of an op's arrays whose major part is that of a dim with these digits."""
    index = next((digit.at for digit in digits), None)
    for value, its in zip(values, dims, strict=True):
        yield from ((value, at) for at, each in enumerate(its) if each and each[0].at == index)


def wanted(plan: State, seeds: Sequence[Seed], text: str) -> Sequence[Seed]:
    """The claims on values that the plan allows a tactic to claim. Raises Error if there are claims, but none are allowed."""
    has = plan.source.addresses.has
    found = [seed for seed in seeds if has(seed.value, *seed.of)]
    if seeds and not found:
        raise claims_elsewhere(plan, seeds, text)
    return found


def of_program(plan: Some, traced: Traced, mesh: Mesh, bound: Signatures | None = None) -> Some:
    """A plan of another program of the same function, with that program's own claims alone."""
    made = place_own(type(plan).start(traced, mesh, bound))
    return replace(made, source=replace(made.source, root=plan.source.root))


def place_own(plan: Some) -> Some:
    """Makes the claims of ops that have their own axes, as a first action, and propagates them."""
    found = own_claims(plan.source.program)
    if not found:
        return plan
    # Replaying skips this line of the trace, because the program makes these claims again.
    mapped = any(not node.signature.once for nodes in found.values() for node, _ in nodes)
    action = Action("# the program's own shard_map" if mapped else "# what one device runs for all", "place")
    table = plan.table.copy()

    def claims(axis: Place) -> Iterator[tuple[ValueId, None]]:
        touched = table.touch(axis)
        for node, index in found[axis]:
            touched.nodes[node.number] = Claim(index, touched.whole.at(1), 0)
            yield from ((value, None) for value in (*node.operands, *node.results))

    put(table, found, claims, action, 0)
    return replace(plan, table=table, actions=(action,))


def put(
    table: Table,
    axes: Iterable[Place],
    claims: Callable[[Place], Iterable[tuple[ValueId, Claim | None]]],
    action: Action,
    number: int,
    padded: bool = False,
) -> None:
    """Puts the claims of an action on a table, one axis after another, and everything that follows from them.

    A value may have no new claim, and what it has then propagates. Claims of the program itself propagate together, later.
    """
    for axis in axes:
        changed = list[ValueId]()
        for value, claim in claims(axis):
            if claim is not None:
                claim_layout(table, value, axis, claim)
            changed.append(value)
        if changed and action.propagate and not action.is_said:
            carry(table, axis, changed, number, action.held, padded)


def _claimed(plan: State, seeds: Sequence[SeedOn], action: Action) -> Table:
    """A copy of the plan's table with these claims, propagated if wanted.

    Claims on loops alone come beside those that are there.
    """
    number = len(plan.actions)
    if len(action.in_loops) == len(seeds):
        return _with_claims(plan, plan.table, seeds, action, number)
    return on_axes(plan, action, lambda table: _with_claims(plan, table, seeds, replace(action, in_loops=()), number))


def on_axes(plan: State, action: Action | None, made: Callable[[Table], Table]) -> Table:
    """The plan's table with what is made of it on axes.

    Of a dim, axes are major to loops, whatever comes first: claims on loops, those of an action too, are made again after it.
    """
    actions = [*plan.actions, *([] if action is None else [action])]
    if not any(each.in_loops for each in actions):
        return made(plan.table)
    table = made(plan.table.in_space())
    for at, each in enumerate(actions):
        if each.in_loops:
            table = _with_claims(plan, table, each.in_loops, each, at)
    return table


def _with_claims(plan: State, table: Table, seeds: Sequence[SeedOn], action: Action, number: int) -> Table:
    """A copy of a table with these claims."""
    table = table.copy()
    axes = [axis for axis in dict.fromkeys(seed.place for seed in seeds) if axis.size > 1]
    axes.sort(key=lambda axis: isinstance(axis, Loop))
    for axis in axes:
        table.touch(axis)
    moved = _leave(plan, table, [seed for seed in seeds if seed.place in axes], number)

    def claims(axis: Place) -> Iterator[tuple[ValueId, Claim | None]]:
        refused = list[Refused]()
        for seed in seeds:
            if seed.place is axis:
                try:
                    # Also if the claim already holds: an earlier action may not have propagated it.
                    yield seed.value, new_claim(plan, table, seed, number, action.held, seed in moved)
                except Refused as error:
                    refused.append(error)
        if refused:
            refused[0].among = refused
            raise refused[0]

    put(table, axes, claims, action, number, any(seed.padded for seed in seeds))
    if problem := too_wide(plan, table):
        raise problem
    return table


def is_same(before: Table, after: Table) -> bool:
    """Whether an action has changed nothing: no claim, no closed dim, no stop, no conflict."""
    axes = ((before.axes.get(axis), table) for axis, table in after.axes.items())
    claims = all(
        not (any(table.nodes) or any(table.values) or table.points)
        if old is None
        else (old.nodes, old.values, old.points) == (table.nodes, table.values, table.points)
        for old, table in axes
        if old is not table
    )
    kept = before.closed == after.closed and before.reconciled.keys() == after.reconciled.keys()
    return (
        claims and kept and before.blocked.keys() == after.blocked.keys() and before.conflicts.keys() == after.conflicts.keys()
    )


def _leave(plan: State, table: Table, seeds: Iterable[SeedOn], number: int) -> set[SeedOn]:
    """Takes values off the dims on which their ops put them, where claims want them on other dims or in other blocks.

    Returns these claims: their values are redistributed. So are arguments that are only stored this way, if propagation put
    them on other dims. All values leave before the first one arrives, so that the axes of a tactic can change places on full
    dims.
    """
    moved: set[SeedOn] = set()
    for seed in seeds:
        have, own = table.claim(seed.value, seed.place), table.axes[seed.place].values[seed.value]
        inferred = own is not None and seed.stored and seed.value not in plan.actions[own.tactic].values
        if seed.dim is None or have is None or not (own is None or inferred):
            continue
        if have.at != seed.dim or seed.block not in (None, have.factor.stride):
            claim_layout(table, seed.value, seed.place, Claim(WHOLE, table.axes[seed.place].whole, number))
            moved.add(seed)
    return moved


def new_claim(plan: State, table: Table, seed: SeedOn, number: int, held: bool, moved: bool) -> Claim | None:
    """The claim to enter into the table; None if it holds already. Raises Refused if it contradicts an earlier one."""
    have = table.claim(seed.value, seed.place)
    own = table.axes[seed.place].values[seed.value]
    if seed.dim is None:
        if own is not None and own.at == WHOLE:
            return None
        if own is not None:
            raise already_claimed(plan, seed, own)
        return Claim(WHOLE, table.axes[seed.place].whole, number)
    if have is None or moved:
        return Claim(seed.dim, _factor(plan, table, seed, seed.dim), number, held)
    if have.at == seed.dim and seed.block in (None, have.factor.stride):
        return None
    raise already_claimed(plan, seed, have)


def _factor(plan: State, table: Table, seed: SeedOn, dim: int) -> Factor:
    shape = plan.source.program.shape(seed.value)
    if 0 in shape:
        title = f"`{seed.name}` cannot be tiled: its dim {shape.index(0)} has no elements"
        raise Error(title, notes=[f"its shape is {list(shape)}"], helps=["leave it replicated"])
    if seed.block is not None:
        in_turn = table.axes[seed.place].whole.at(seed.block)
        if shape[dim] % in_turn.span or not table.fits_value(seed.value, dim, in_turn):
            raise not_in_turn(plan, table, seed, dim)
        return in_turn
    computed = plan.source.program.producer[seed.value] >= 0 and seed.said
    trip = plan.source.classes.in_a_trip(seed.value, dim) if plan.source.program.has_regions and not computed else None
    if trip is not None and trip % seed.blocks:
        trip = None
    factor = next_factor(table, seed.value, dim, seed.place, 0 if trip else seed.pads, trip)
    if factor is None:
        raise uneven_claim(plan, table, seed, dim)
    return factor
