"""Puts values on parts of the mesh, as device sets: the devices at one coordinate of an axis.

The axis is then no place for dims of values: it says where ops run. All other axes are places within each set.

    on(plan, "block0", stage=0), on(plan, "block1", stage=1)   -->   %h = block0 %x on devices 0 to 3, block1 %h on 4 to 7
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from ...dialects.ground.errors import Error
from ...dialects.mesh import Mesh
from ...rewrites.decide.device_sets import ClaimOfSet, Claims, coordinates, on_sets, units
from ...rewrites.program.program import NodeId, ValueId
from ..inputs.message_language import step
from ..inputs.names import Patterns
from ..inputs.tactic_calls import Call
from .claims import acted
from .named_laws import check_names, matched_scope, scope_of
from .state import Action, State

Some = TypeVar("Some", bound=State)


def on(plan: Some, values: Patterns, coordinates: Mapping[str, int]) -> Some:
    """Claims ops, those in scopes, and arguments for the device set at these coordinates. `Plan.on` describes it."""
    call = Call("on", (values,), dict(coordinates))
    devices, (named, given) = _part(plan, call), _named(plan, values)
    old = Claims() if plan.table.sets is None else plan.table.sets.claims
    unit_of, own = units(plan.source.program), ClaimOfSet(devices, len(plan.actions))
    taken = {unit_of[number]: each for number, each in old.ops.items()}
    # Of two claims the earlier one holds, as of two on ops of one loop.
    ops = [number for number in named if taken.get(unit_of[number], own).on is devices]
    arguments = [value for value in given if old.arguments.get(value, own).on is devices]
    if not ops and not arguments:
        raise _elsewhere(plan, call, taken[unit_of[named[0]]] if named else old.arguments[given[0]])
    claims = Claims({**dict.fromkeys(ops, own), **old.ops}, {**dict.fromkeys(arguments, own), **old.arguments})
    table = plan.table.copy()
    table.sets = on_sets(plan.source.program, claims)
    action = Action(str(call), "on", dict.fromkeys(arguments), idle=claims == old)
    return acted(plan, action, table).by(partial(on, values=values, coordinates=coordinates))


def _part(plan: State, call: Call) -> Mesh:
    """The part of the mesh that is asked for. Raises Error for axes that are places for dims, and for parts along others."""
    mesh, axes = plan.mesh, [*call.kwargs]
    if not axes:
        axis = next(iter(mesh), "stage")
        helps = [f"say which, by a coordinate: {step(f'on({call.args[0]!r}, {axis}=0)')}"]
        raise Error("`on` needs a part of the mesh", notes=[f"the mesh is {mesh}"], helps=helps)
    devices = mesh.whole().in_space.at(**cast("Mapping[str, int]", call.kwargs))
    if mesh.loops:
        helps = ["leave out the tactics that make loops, such as `Microbatch`"]
        raise Error(f"the plan has loops, {', '.join(map(str, mesh.loops))}, and a loop runs on one device set", helps=helps)
    for axis in axes:
        for place in mesh.named(axis):
            if (table := plan.table.axes.get(place)) is not None and (any(table.nodes) or any(table.values)):
                helps = ["tile on the other axes", f"or take an axis of its own: pt.{mesh.whole()!r} with another one"]
                raise Error(f"dims are placed on `{axis}`, so that its devices are no device sets", helps=helps)
    if plan.table.sets is not None and (others := plan.table.sets.along) != set(axes):
        names = ", ".join(f"`{each}`" for each in sorted(others))
        title = f"the device sets of the plan are along {names}"
        raise Error(title, helps=["give a coordinate of each of these, and no other"])
    return devices


def _named(plan: State, values: Patterns) -> tuple[Sequence[NodeId], Sequence[ValueId]]:
    """The ops and the arguments that patterns name, by scope or by value. Raises Error for a pattern that names none."""
    check_names(plan, values)
    program, ops, arguments = plan.source.program, dict[NodeId, None](), dict[ValueId, None]()
    for node in program.nodes:
        if matched_scope(scope_of(plan, node), values) is not None:
            ops[node.number] = None
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


def _elsewhere(plan: State, call: Call, claim: ClaimOfSet) -> Error:
    title = f"what {call.args[0]!r} names is on {coordinates(claim.on)} by {plan.cited(claim.tactic)}"
    return Error(title, helps=["claim it first: of two claims the earlier one holds", "or leave it out of the earlier one"])
