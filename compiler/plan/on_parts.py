"""Puts values on parts of the mesh, as device sets: the devices at one coordinate of an axis.

The axis is then no place for dims of values: it says where ops run. All other axes are places within each set.

    on(plan, "block0", stage=0), on(plan, "block1", stage=1)   -->   %h = block0 %x on devices 0 to 3, block1 %h on 4 to 7
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ...dialects.ground.errors import Error
from ...dialects.mesh import in_sets as mesh_in_sets
from ...rewrites.decide.device_sets import ClaimOfSet, Claims, DeviceSets, coordinates
from ...rewrites.program.program import NodeId, ValueId
from ..inputs.message_language import step
from ..inputs.names import Patterns
from ..inputs.tactic_calls import Call
from .claims import acted
from .history import redone
from .named_laws import check_names, matched_scope
from .state import Action, State

Some = TypeVar("Some", bound=State)


def on(plan: Some, values: Patterns, where: Mapping[str, int]) -> Some:
    """Claims ops, those in scopes, and arguments for the device set at these coordinates. `Plan.on` describes it."""
    check_part(plan, values, where)
    named, given = _named(plan, values)
    plan = in_sets(plan, where)
    devices = plan.mesh.whole().in_space.at(**where)
    call = Call("on", (values,), {axis: where[axis] for axis in plan.mesh if axis in where})
    old = Claims() if plan.table.sets is None else plan.table.sets.claims
    unit_of, own = plan.source.units, ClaimOfSet(devices, len(plan.actions))
    taken = {unit_of[number]: each for number, each in old.ops.items()}
    # Of two claims the earlier one holds, as of two on ops of one loop.
    ops = [number for number in named if taken.get(unit_of[number], own).on is devices]
    arguments = [value for value in given if old.arguments.get(value, own).on is devices]
    if not ops and not arguments:
        raise _elsewhere(plan, call, taken[unit_of[named[0]]] if named else old.arguments[given[0]])
    claims = Claims({**dict.fromkeys(ops, own), **old.ops}, {**dict.fromkeys(arguments, own), **old.arguments})
    table = plan.table.copy()
    table.sets = DeviceSets(plan.source.program, claims, unit_of)
    action = Action(str(call), "on", dict.fromkeys(arguments), idle=claims == old)
    return acted(plan, action, table).by(partial(on, values=values, where=where))


def check_part(plan: State, values: Patterns, where: Mapping[str, int]) -> None:
    """Raises Error for coordinates that are none of the mesh, for parts along other axes, and for a plan with loops."""
    mesh = plan.mesh
    if not where:
        axis = next(iter(mesh), "stage")
        helps = [f"say which, by a coordinate: {step(f'on({values!r}, {axis}=0)')}"]
        raise Error("`on` needs a part of the mesh", notes=[f"the mesh is {mesh}"], helps=helps)
    mesh.whole().in_space.at(**where)
    if mesh.loops:
        helps = ["leave out the tactics that make loops, such as `Microbatch`"]
        raise Error(f"the plan has loops, {', '.join(map(str, mesh.loops))}, and a loop runs on one device set", helps=helps)
    if mesh.apart and {*mesh.apart} != {*where}:
        title = f"the device sets of the plan are along {', '.join(f'`{each}`' for each in mesh.apart)}"
        raise Error(title, helps=["give a coordinate of each of these, and no other"])


def in_sets(plan: Some, axes: Mapping[str, int]) -> Some:
    """The plan on the mesh in which these axes are no places for dims: its tactics make their claims again there."""
    if plan.mesh.apart:
        return plan
    source, mesh = plan.source, mesh_in_sets(plan.source.mesh, axes)
    made = redone(plan, plan.own, (), keeps=True, mesh=mesh)
    made = replace(made, source=replace(made.source, addresses=source.addresses))
    for axis in axes:
        for place in made.mesh.named(axis):
            if (table := made.table.axes.get(place)) is not None and (any(table.nodes) or any(table.values)):
                helps = ["tile on the other axes", f"or take an axis of its own: pt.{source.mesh!r} with another one"]
                raise Error(f"dims are placed on `{axis}`, so that its devices are no device sets", helps=helps)
    return made


def _named(plan: State, values: Patterns) -> tuple[Sequence[NodeId], Sequence[ValueId]]:
    """The ops and the arguments that patterns name, by scope or by value. Raises Error for a pattern that names none."""
    check_names(plan, values)
    program, has = plan.source.program, plan.source.addresses.has
    ops, arguments = dict[NodeId, None](), dict[ValueId, None]()
    for scope, numbers in plan.source.by_scope.items():
        if matched_scope(scope, values) is not None:
            ops |= dict.fromkeys(number for number in numbers if has(*program.nodes[number].results[:1]))
    try:
        found = plan.source.addresses.find(values)
    except Error:
        # It may be the scope of values that have no name.
        found = dict[str, ValueId]()
    for value in found.values():
        if (number := program.producer[value]) < 0:
            arguments[value] = None
        else:
            ops[number] = None
    return [*ops], [*arguments]


def name_of_op(plan: State, number: NodeId) -> str:
    """A name by which `on` claims an op alone: `block1/add#0`. (`block1` is all of a scope.) A loop goes by what leaves it."""
    units = plan.source.units
    last = [node for node in plan.source.program.nodes if units[node.number] == units[number] and node.results][-1]
    return next(name for name, value in plan.source.addresses.by_op.items() if value == last.results[0])


def _elsewhere(plan: State, call: Call, claim: ClaimOfSet) -> Error:
    title = f"what {call.args[0]!r} names is on {coordinates(claim.on)} by {plan.cited(claim.tactic)}"
    return Error(title, helps=["claim it first: of two claims the earlier one holds", "or leave it out of the earlier one"])
