"""The schedule of a program that XLA has compiled: what a device computes, where collectives start and end; and their counts.

What a loop's body holds counts by the loop's trips, as in `tests/support/jaxpr_collectives`. Bytes are those that one device
receives: of the result's size V, over groups of n, all_gather and all_to_all V(n-1)/n, reduce_scatter V(n-1), all_reduce
2V(n-1)/n, permute V.

XLA:TPU spreads one asynchronous collective over several fusions: a first one that starts it, more that continue it beside other
work, and a last one that ends it. Each contains the instruction, with a number that all of them share.
It also writes a reduce_scatter as a fusion of an all_reduce and a slice.
"""

import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from . import hlo_trips

KINDS = {
    "all-gather": "all_gather",
    "all-reduce": "all_reduce",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "collective-permute": "permute",
}

COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) [^\n]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
OP = re.compile(rf"^ *(?:ROOT )?%?([\w.-]+) = (.*?) ({'|'.join(KINDS)})(-start)?\((.*)$")
STARTED = re.compile(r"custom-call\(%?([\w.-]+)[^\n]*custom_call_target=\"AsyncCollectiveStart\"")
ENDED = re.compile(r"custom-call\((.*?)\)[^\n]*custom_call_target=\"AsyncCollectiveDone\"")
SPREAD = re.compile(r"chain_id=\"?([\w.-]+)")
DONE = re.compile(rf" (?:(?:{'|'.join(KINDS)}|async)-done)\(.*?%?([\w.-]+)\)")
ASYNC = re.compile(r"%?([\w.-]+) = .* async-start\(")
NAME = re.compile(r"%([\w.-]+)")
CYCLES = re.compile(r"\"estimated_cycles\":\"(\d+)\"")
SCATTER = "all-reduce-scatter"
RESULT = re.compile(r"^ *(?:ROOT )?%?[\w.-]+ = (.*?) [\w-]+\(", re.MULTILINE)
CALL = re.compile(r"(?:to_apply|calls)=%?([\w.-]+)")
ARRAY = re.compile(r"([a-z]+)(\d+)\w*\[([\d,]*)\]|pred\[([\d,]*)\]")
GROUPS = re.compile(r"replica_groups=(?:\{\{([\d,]+)\}|\[\d+,(\d+)\]|mesh\[(.*?)\](?:, device_ids=\(.*?\))? \{(.*?)\})")
AXIS = re.compile(r"('\w+')=(\d+)")


class Collective(NamedTuple):
    """A collective with its executions and the bytes that a device receives in all of them."""

    kind: str
    times: int
    bytes: float
    asynchronous: bool = False
    """Whether other work may run between its start and its end."""
    shape: str = ""
    """The shape of its result, as XLA writes it."""


class Work(NamedTuple):
    """What a device computes, in cycles of its clock, as XLA estimates them."""

    cycles: int


class Start(NamedTuple):
    """The start of a collective."""

    key: str
    collective: Collective


class End(NamedTuple):
    """The end of the collective that has been started with this key: what follows may need its result."""

    key: str


class Loop(NamedTuple):
    """A loop and the schedule of a trip."""

    trips: int
    body: list["Step"]


Step = Work | Start | End | Loop


def schedule(text: str) -> list[Step]:
    """What a compiled module does, in its order, by its text: `jit(f).lower(x).compile().as_text()`."""
    bodies = {name: (bool(entry), body) for entry, name, body in COMPUTATION.findall(text)}
    (entry,) = (name for name, (is_entry, _) in bodies.items() if is_entry)
    return list(_steps({name: body for name, (_, body) in bodies.items()}, entry))


def collectives(text: str) -> list[Collective]:
    """The collectives of a compiled module, by its text."""
    return list(_executed(schedule(text), 1))


def counts(found: list[Collective]) -> dict[str, int]:
    """How often each kind is executed."""
    return {kind: sum(each.times for each in found if each.kind == kind) for kind in KINDS.values()}


def received(found: list[Collective]) -> int:
    """Bytes that one device receives, rounded."""
    return round(sum(each.bytes for each in found))


def largest(text: str) -> int:
    """The bytes of the largest array that a device holds while it runs a compiled module.

    It is the largest result of an instruction, arguments included. What an instruction fuses is not counted.
    """
    fused = set(re.findall(r" fusion\(.*?calls=%?([\w.-]+)", text))
    bodies = [body for _, name, body in COMPUTATION.findall(text) if name not in fused]
    arrays = (array[0] for body in bodies for shape in RESULT.findall(body) for array in ARRAY.finditer(shape))
    return max(map(_bytes, arrays))


def _executed(steps: list[Step], times: int) -> Iterator[Collective]:
    for step in steps:
        match step:
            case Start(_, collective):
                yield collective._replace(times=times, bytes=times * collective.bytes)
            case Loop(trips, body):
                yield from _executed(body, times * trips)
            case _:
                pass


def _steps(bodies: dict[str, str], name: str) -> Iterator[Step]:
    started, ended = set(STARTED.findall(bodies[name])), " ".join(ENDED.findall(bodies[name]))
    for line in bodies[name].splitlines():
        if op := OP.search(line):
            own, shape, kind, start, rest = op.groups()
            chain = SPREAD.search(rest)
            key = chain[1] if chain else own
            if not chain or own in started:
                whole, kind = _result(shape, kind) if start else shape, SCATTER if name.startswith(SCATTER) else kind
                yield Start(key, _collective(kind, whole, rest, bool(chain or start)))
            if not start and (not chain or own in NAME.findall(ended)):
                yield End(key)
        elif done := DONE.search(line):
            yield End(done[1])
        elif (body := hlo_trips.body(line)) is not None:
            yield Loop(hlo_trips.trips(bodies, bodies[name], line), list(_steps(bodies, body)))
        elif (call := CALL.search(line)) and call[1] in bodies:
            yield from _called(line, list(_steps(bodies, call[1])))
        elif work := CYCLES.search(line):
            yield Work(int(work[1]))


def _called(line: str, inside: list[Step]) -> Iterator[Step]:
    """The steps of an instruction that calls others. A fusion computes as a whole: after its starts, and before its ends."""
    if asynchronous := ASYNC.search(line):
        yield from (
            Start(asynchronous[1], each.collective._replace(asynchronous=True)) for each in inside if isinstance(each, Start)
        )
    elif work := CYCLES.search(line):
        closed = {each.key for each in inside if isinstance(each, Start) and not each.collective.asynchronous}
        yield from (each for each in inside if isinstance(each, Start) or (isinstance(each, End) and each.key in closed))
        yield Work(int(work[1]))
        yield from (each for each in inside if isinstance(each, End) and each.key not in closed)
    else:
        yield from inside


def _collective(kind: str, shape: str, rest: str, asynchronous: bool) -> Collective:
    return Collective(KINDS.get(kind, "reduce_scatter"), 1, _bytes(shape) * _share(kind, rest), asynchronous, shape)


def _result(shape: str, kind: str) -> str:
    """What the start of a collective gives: a pair of the operand and the result, or for an all_reduce the result alone."""
    if kind == "all-reduce":
        return shape
    depth, starts = 0, [1]
    for at, sign in enumerate(shape):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 1:
            starts.append(at + 1)
    return shape[starts[1] : ([*starts, len(shape)])[2] - 1]


def _share(kind: str, rest: str) -> float:
    """What part of the result's size a device receives."""
    if kind == "collective-permute":
        return 1.0
    n = _group(rest)
    return {"all-reduce": 2 * (n - 1) / n, "reduce-scatter": n - 1.0}.get(kind, (n - 1) / n)


def _group(rest: str) -> int:
    """The number of devices in a group."""
    found = GROUPS.search(rest)
    assert found is not None, rest
    listed, size, mesh, axes = found.groups()
    if mesh:
        return prod(int(size) for name, size in AXIS.findall(mesh) if name in axes)
    return int(size) if size else len(listed.split(","))


def _bytes(shape: str) -> int:
    """The bytes of an array, or of all arrays of a tuple."""
    return sum(
        prod(int(size) for size in (dims or flags).split(",") if size) * (max(int(bits) // 8, 1) if bits else 1)
        for _, bits, dims, flags in ARRAY.findall(shape)
    )
