"""The rule harness: one op, all of its derived tilings, on all devices in lockstep, against NumPy and against JAX.

A sample is a call of an op and, on several meshes, placements of its indices: each index alone at each valid stride, and
random placements of several axes on several indices or on one. Most samples are not compiled: the interpreter runs the
program of every device.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Any

import jax
from agreement import disagreement
from call import Call
from hypothesis import reject
from lowered import interpreted, lowers_from_its_text

import partita as pt
from partita.compiler.api.plan import Plan, start
from partita.compiler.plan.claims import Action
from partita.compiler.trace.trace import Traced, trace
from partita.dialects.ranges.algebra import Place as MeshPlace
from partita.dialects.ranges.factor import Factor
from partita.dialects.reference.interpret import interpret
from partita.rewrites.decide.propagate import propagate
from partita.rewrites.decide.table import Claim, Table
from partita.rewrites.program.program import Node

DEVICES = 8
# One call in this many is compiled.
COMPILED = 12
# Of one placement in this many, some axes are loops.
IN_TIME = 3


@dataclass(frozen=True, slots=True)
class Place:
    """An axis of `size` devices at an index of a node; its coordinate advances by `stride` elements of the index."""

    node: int
    index: int
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A plan with these placements, of which some may have been refused."""

    plan: Plan
    places: tuple[Place, ...]


def nodes_of(plan: Plan, kind: str) -> list[Node]:
    """The nodes of the op: several if its values are placed independently."""
    nodes = [node for node in plan.source.program.nodes if node.op_name == kind]
    # JAX omits ops without effect, such as a reshape to the same shape.
    assert len({id(node.op) for node in nodes}) <= 1
    return nodes


def place(plan: Plan, axes: Sequence[MeshPlace], places: Sequence[Place]) -> Placed:
    """Each placement on a separate axis or loop, in order, each propagated before the next."""
    table = plan.table.copy()
    held: list[Place] = []
    for axis, each in zip(axes, places, strict=True):
        node = plan.source.program.nodes[each.node]
        fits = table.misfit(node, each.index, Factor(axis, each.stride)) is None
        if fits and (axis not in table.axes or free(table, axis, node)):
            table.touch(axis).nodes[each.node] = Claim(each.index, Factor(axis, each.stride), len(held))
            propagate(table, axis, [*node.operands, *node.results], len(held))
            held.append(each)
    return Placed(replace(plan, table=table, actions=(Action("by hand", "place"),)), tuple(held))


def free(table: Table, axis: MeshPlace, node: Node) -> bool:
    return table.axes[axis].nodes[node.number] is None


def singles(nodes: Sequence[Node]) -> Iterator[Place]:
    """Every index on numbers of devices that divide it, in blocks and, if possible, cyclically, and on one that does not."""
    for node in nodes:
        for at, index in enumerate(node.signature.instance.indices):
            sizes = [size for size in range(2, DEVICES + 1) if index.extent % size == 0]
            for size in sizes[:2]:
                block = index.extent // size
                for stride in sorted({block, 1} if block % 2 else {block, block // 2}, reverse=True):
                    yield Place(node.number, at, size, stride)
            uneven = next(size for size in range(2, index.extent + 2) if index.extent % size)
            if uneven <= DEVICES:
                yield Place(node.number, at, uneven, -(-index.extent // uneven))


def several(nodes: Sequence[Node], random: Random) -> Iterator[tuple[Place, ...]]:
    """Two or three axes on random indices, at random strides."""
    found: list[Place] = []
    indices = [(node, at, index.extent) for node in nodes for at, index in enumerate(node.signature.instance.indices)]
    for _ in range(3 if indices else 0):
        node, at, extent = random.choice(indices)
        sizes = [n for n in (2, 2, 3, 4, 5) if extent % n == 0 and n * prod(each.size for each in found) <= DEVICES]
        if sizes:
            size = random.choice(sizes)
            strides = [stride for stride in range(1, extent + 1) if extent % (stride * size) == 0]
            found.append(Place(node.number, at, size, random.choice(strides)))
    if len(found) > 1:
        yield tuple(found)


@dataclass(frozen=True, slots=True)
class Checked:
    """The number of indices of the call, of placed indices, and of plans."""

    indices: int
    executed: int
    places: int


def on(traced: Traced, places: Sequence[Place], in_time: Collection[int] = ()) -> Placed:
    """The placements with these numbers are on loops, the others on axes."""
    names = "abc"[: len(places)]
    sizes = {name: each.size for name, each in zip(names, places, strict=True)}
    mesh = pt.Mesh({name: size for at, (name, size) in enumerate(sizes.items()) if at not in in_time})
    for at in in_time:
        mesh = mesh.having(f"{names[at]}:{places[at].size}")
    return place(start(traced, mesh), [mesh.place(name) for name in names], places)


def check(call: Call, seed: int) -> Checked:
    """Checks the call unpartitioned and in all its tilings; a few of them on real devices."""
    expected = eager(call)
    traced = trace(call.function, *call.args)
    whole = interpret(traced.module, call.args, pt.Mesh(a=1))
    assert (text := disagreement(whole, expected)) == "", f"NumPy, unpartitioned: {text}"
    nodes = nodes_of(start(traced, pt.Mesh(a=2)), call.op)
    tried = [*((each,) for each in singles(nodes)), *several(nodes, Random(seed))]
    done: list[Place] = []
    random = Random(seed)
    for number, places in enumerate(tried):
        last = number == len(tried) - 1
        in_time = [at for at in range(len(places)) if random.randrange(2)] if number % IN_TIME == 0 or last else []
        placed = on(traced, places, in_time)
        done += placed.places
        if placed.places:
            equal(placed.plan, call, whole, placed.places, text=last, devices=last and seed % COMPILED == 0)
    indices = sum(len(node.signature.instance.indices) for node in nodes)
    return Checked(indices, len({(each.node, each.index) for each in done}), len(tried))


def eager(call: Call) -> list[Any]:
    """The result of JAX on one device. Calls that JAX refuses are skipped."""
    try:
        return jax.tree.leaves(call.function(*call.args))
    except (TypeError, OverflowError):
        reject()


def equal(plan: Plan, call: Call, expected: Sequence[Any], places: Sequence[Place], text: bool, devices: bool) -> None:
    """Checks the plan before and after fusion, and lowered to device-local code; on request by its text and on real devices."""
    forms: dict[str, Callable[[], Sequence[Any]]] = {
        "unfused": lambda: interpret(plan.ir(fused=False), call.args),
        "fused": lambda: interpret(plan.ir(), call.args),
        "lowered": lambda: interpreted(plan, call.args),
    }
    if devices:
        forms["compiled"] = lambda: jax.tree.leaves(plan.compile()(*call.args))
    for form, run in forms.items():
        differs = disagreement(run(), expected)
        assert differs == "", f"{form}, {places}: {differs}\n{plan.ir()}\n{plan.spmd()}"
    if text:
        lowers_from_its_text(plan)
