"""The names that a program gives to its values: tags, and the paths of `jax.named_scope`.

A scope names the values that leave it. What JAX's transformations put around a scope is no part of the path: a value of the
backward pass is in `mlp/backward`.

    with jax.named_scope("mlp"):
        h = jax.nn.relu(x @ w1)
        y = h @ w2                   mlp
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import takewhile

from xdsl.ir import Operation, SSAValue

from ...dialects.lax import ConstantOp, params_of
from ..inputs.lines import ScopePath, SourceLines, as_written, direction_of
from ..inputs.names import escape_parts, join

_TAGS = ("lax.tag", "lax.name")
_TRANSFORMED = re.compile(r"(jvp|transpose|vmap)\((.*)\)")


def tags(main: Operation) -> Iterator[tuple[str, SSAValue]]:
    """The values that `pt.tag` and `checkpoint_name` name."""
    for op in main.walk():
        if op.name in _TAGS:
            name = str(params_of(op)["name"])
            # `pt.tag` has escaped the keys of its tree; `checkpoint_name` gives any text.
            yield (name if op.name == "lax.tag" else escape_parts(name)), op.results[0]


@lru_cache(maxsize=1 << 12)
def split_scope(scope: str) -> tuple[str, ...]:
    """Splits a scope path into parts. A slash inside of parentheses does not separate: `transpose(jvp(a/b))/c` has two parts.

    A transformation without a user's scope, `transpose(jvp())`, is not a part.
    """
    parts, depth, start = list[str](), 0, 0
    for place, mark in enumerate(scope):
        depth += (mark == "(") - (mark == ")")
        if mark == "/" and depth == 0:
            parts.append(scope[start:place])
            start = place + 1
    return tuple(part for part in (*parts, scope[start:]) if part and not part.rstrip(")").endswith("("))


def current_name(former: str) -> str:
    """A name that an earlier version gave, in the form of today: `transpose(jvp(mlp))/mul#7` --> `mlp/backward/mul#7`."""
    # The number of a value that leaves a scope says nothing today: the scope names all of these.
    *found, last = [*split_scope(re.sub(r"(?<=\))#\d+$", "", former))] or [""]
    scope, op = (found, last) if "#" in last else ([*found, last], "")
    return join(ScopePath(written_scopes("/".join(scope)), direction_of(former)).name(), op)


def written_scopes(path: str) -> tuple[str, ...]:
    """The scopes of a path that the user wrote."""
    return as_written(_elements(path))


def _elements(path: str) -> Iterator[tuple[bool, str]]:
    """The scopes and transformations of a path: whether each is a scope, and its name."""
    for part in split_scope(path):
        transformed = _TRANSFORMED.fullmatch(part)
        yield transformed is None, transformed[1] if transformed else part
        yield from _elements(transformed[2]) if transformed else ()


def counted_in(op: Operation, sources: SourceLines) -> ScopePath:
    """Where an op is counted. A constant is in no scope: it is one value for all that read it."""
    return ScopePath() if isinstance(op, ConstantOp) else sources.written(op)


def leaving(main: Operation, sources: SourceLines) -> Mapping[str, list[SSAValue]]:
    """Scope --> the values that leave it, the innermost scope of a value first."""
    scopes, found = {op: counted_in(op, sources) for op in sources}, defaultdict[str, list[SSAValue]](list)
    for op, value, kept in _made(main, {op: scope.parts for op, scope in scopes.items()}):
        for depth in range(len(scopes[op].parts), kept, -1):
            found[scopes[op].name(depth)].append(value)
    return found


def former(main: Operation, sources: SourceLines) -> Iterator[tuple[str, SSAValue]]:
    """The names that values in scopes had, with JAX's transformations in the paths, and counted through them.

    `jvp(mlp)#1` is a value that leaves the scope, `transpose(jvp(mlp))/dot_general#1` one that stays inside.
    """
    scopes = {op: split_scope(sources.scope(op)) for op in sources}
    left: defaultdict[str, list[SSAValue]] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    inside: list[tuple[str, SSAValue]] = []
    for op, value, kept in _made(main, scopes):
        for depth in range(len(scopes[op]), kept, -1):
            left["/".join(scopes[op][:depth])].append(value)
        if kept == len(scopes[op]):
            stem = f"{'/'.join(scopes[op])}/{op.name.removeprefix('lax.')}"
            inside.append((f"{stem}#{counts[stem]}", value))
            counts[stem] += 1
    for name, values in left.items():
        yield from ((name if len(values) == 1 else f"{name}#{k}", value) for k, value in enumerate(values))
    yield from inside


def _made(main: Operation, scopes: Mapping[Operation, tuple[str, ...]]) -> Iterator[tuple[Operation, SSAValue, int]]:
    """The values made in scopes, each with its op and how many of the scopes around it are around all of its uses."""
    for op in main.walk():
        scope = scopes.get(op, ())
        for value in op.results if scope else ():
            yield op, value, min((_shared(scope, _around(use.operation, scopes)) for use in value.uses), default=len(scope))


def _around(op: Operation, scopes: Mapping[Operation, tuple[str, ...]]) -> tuple[str, ...]:
    """The scope of a use. A value that a body yields is used at its loop, a returned value outside of all scopes."""
    parent = op.parent_op()
    while op not in scopes and parent is not None:
        op, parent = parent, parent.parent_op()
    return scopes.get(op, ())


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """The number of parts that two paths have in common at the start."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))])
