"""How often a compiled loop runs: as XLA:CPU writes beside it, or as its counter says.

start, in the caller     %t = tuple(%zero, ...), with %zero = constant(0)
condition                compare(get-tuple-element(%p), index=0, constant(16)), direction=LT
step, in the body        ROOT tuple(add(get-tuple-element(%q), constant(2)), ...)                  -->   8 trips
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

KNOWN = re.compile(r"\"known_trip_count\":\{\"n\":\"(\d+)\"\}")
LOOP = re.compile(r" while\(%?([\w.-]+)\), condition=%?([\w.-]+), body=%?([\w.-]+)")
LINE = re.compile(
    r"^ *(ROOT )?%?([\w.-]+) = (?:\(.*?\)|\S+) (constant|copy|bitcast|add|compare|tuple|get-tuple-element)\((.*)$"
)
COMMENT = re.compile(r"/\*.*?\*/")
SAME = ("copy", "bitcast")


class Op(NamedTuple):
    """An instruction with the names of its operands; for a constant, with its text instead."""

    kind: str
    operands: list[str]
    rest: str


def body(line: str) -> str | None:
    """The name of the body of the loop on this line, if it has one."""
    found = LOOP.search(line)
    return found and found[3]


def trips(bodies: Mapping[str, str], caller: str, line: str) -> int:
    """How often the loop on this line of its caller's text runs. Raises ValueError if that cannot be told."""
    if known := KNOWN.search(line):
        return int(known[1])
    found = LOOP.search(line)
    assert found is not None, line
    start, condition, inside = found.groups()
    (of_test, test), (within, root), (around, _) = map(_parsed, (bodies[condition], bodies[inside], caller))
    try:
        counter, bound = (of_test[name] for name in test.operands)
        index = int(counter.rest.split("index=")[1].split(",")[0])
        first, last = _constant(around, around[start].operands[index]), int(bound.operands[0])
        step = _step(within, root.operands[index])
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"a loop of unknown trip count: {line[:200]}") from error
    if test.kind != "compare" or "direction=LT" not in test.rest:
        raise ValueError(f"a loop with another test: {line[:200]}")
    return max(0, -((first - last) // step))


def _constant(ops: Mapping[str, Op], name: str) -> int:
    op = ops[name]
    return _constant(ops, op.operands[0]) if op.kind in SAME else int(op.operands[0])


def _step(ops: Mapping[str, Op], name: str) -> int:
    """What the body adds to its counter, in one or in several additions."""
    match ops[name]:
        case Op("get-tuple-element"):
            return 0
        case Op("add", [of, by], _):
            return _step(ops, of) + _constant(ops, by)
        case Op(kind, [of], _) if kind in SAME:
            return _step(ops, of)
        case other:
            raise ValueError(f"a counter that is computed by {other.kind}")


def _parsed(text: str) -> tuple[dict[str, Op], Op]:
    """The instructions of a computation that a counter may need, by name, and its root."""
    ops, root = dict[str, Op](), Op("", [], "")
    for line in text.splitlines():
        if found := LINE.search(line):
            is_root, name, kind, rest = found.groups()
            inside, _, after = COMMENT.sub("", rest).partition(")")
            ops[name] = Op(kind, [each.strip().lstrip("%") for each in inside.split(",")], after)
            root = ops[name] if is_root else root
    return ops, root
