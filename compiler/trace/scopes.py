"""Names intermediate values, by tags and by the paths of `jax.named_scope`.

A scope names the values that leave it; the values that stay inside are `scope/op#k`, counted by op.

    with jax.named_scope("mlp"):
        h = jax.nn.relu(x @ w1)      mlp/dot_general#0, mlp/max#0
        y = h @ w2                   mlp
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from typing import cast

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from ...dialects.params import ParamsAttr
from ..inputs.lines import Sources
from ..inputs.names import escape_parts

_TAGS = ("lax.tag", "lax.name")


def addresses(
    main: func.FuncOp, arg_names: Sequence[str], result_names: Sequence[str], sources: Sources
) -> Mapping[str, tuple[SSAValue, ...]]:
    """Maps each name to the values that it stands for."""
    found: defaultdict[str, list[SSAValue]] = defaultdict(list)
    returned = cast(Operation, main.body.block.last_op).operands
    arguments, results = zip(arg_names, main.body.block.args, strict=True), zip(result_names, returned, strict=True)
    for name, value in chain(arguments, _tags(main), _scoped(main, sources), results):
        found[name].append(value)
    return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}


def value_names(named: Mapping[str, Sequence[SSAValue]]) -> Mapping[SSAValue, str]:
    """Maps each value to the name that reports use: the first in `addresses`, so a tag comes before a scope."""
    names: dict[SSAValue, str] = {}
    for name, values in named.items():
        for value in values:
            names.setdefault(value, name)
    return names


def _tags(main: Operation) -> Iterator[tuple[str, SSAValue]]:
    for op in main.walk():
        if op.name in _TAGS:
            name = str(cast(ParamsAttr, op.properties["params"])["name"])
            # `pt.tag` has escaped the keys of its tree; `checkpoint_name` gives any text.
            yield (name if op.name == "lax.tag" else escape_parts(name)), op.results[0]


@lru_cache(maxsize=1 << 12)
def split(scope: str) -> tuple[str, ...]:
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


def _scoped(main: Operation, sources: Sources) -> Iterator[tuple[str, SSAValue]]:
    """Yields the values that leave a scope under its name, innermost scope first, then those that stay inside."""
    scopes = {op: split(sources.scope(op)) for op in sources}
    leaving: defaultdict[str, list[SSAValue]] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    inside: list[tuple[str, SSAValue]] = []
    for op in main.walk():
        scope = scopes.get(op, ())
        for value in op.results if scope else ():
            kept = min((_shared(scope, _around(use.operation, scopes)) for use in value.uses), default=len(scope))
            for depth in range(len(scope), kept, -1):
                leaving["/".join(scope[:depth])].append(value)
            if kept == len(scope):
                stem = f"{'/'.join(scope)}/{op.name.removeprefix('lax.')}"
                inside.append((f"{stem}#{counts[stem]}", value))
                counts[stem] += 1
    for name, values in leaving.items():
        yield from ((name if len(values) == 1 else f"{name}#{k}", value) for k, value in enumerate(values))
    yield from inside


def _around(op: Operation, scopes: Mapping[Operation, tuple[str, ...]]) -> tuple[str, ...]:
    """The scope of a use. A value that a body yields is used at its loop, a returned value outside of all scopes."""
    parent = op.parent_op()
    while op not in scopes and parent is not None:
        op, parent = parent, parent.parent_op()
    return scopes.get(op, ())


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """The number of parts that two paths have in common at the start."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))])
