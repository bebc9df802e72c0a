"""The names of a function's values in a plan: an equation is a scope, and a call is a scope that contains the callee's.

h = layer(x, w)        h, h/z, h/y        a, b = pair(x)    a is a_b/y
z[i] = x[i]            the same value as x, so its address is `x`
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...dialects.definitions.syntax_tree import Read
from ...dialects.ground.errors import Span
from .check import CheckedFile
from .terms import Array, Calling, CheckedEquation, CheckedFunction, Left


@dataclass(frozen=True, slots=True)
class Address:
    """A value of a function, or of one that it calls. `name` is its name in the text, `path` its name in plans."""

    name: str
    path: str
    array: Array
    span: Span


def addresses_by_name(program: CheckedFile, function: CheckedFunction) -> Mapping[str, Address]:
    """Name in the text -> address, for every value that a plan of the function can name."""
    arguments = [Address(each.name, each.name, each, each.span) for each in function.arguments]
    return {each.name: each for each in (*addresses(program, function), *arguments)}


def addresses(
    program: CheckedFile, function: CheckedFunction, prefix: str = "", given: Mapping[str, str] | None = None
) -> Iterator[Address]:
    """The values that equations define. `given` are the paths of the arguments, for a function that is called."""
    paths = dict(given or {each.name: each.name for each in function.arguments})
    for statement in function.statements:
        if isinstance(statement, CheckedEquation):
            left = statement.left
            paths[left.array.name] = paths[same] if (same := alias(statement)) else prefix + left.array.name
            yield _address(prefix, left, paths[left.array.name])
        else:
            yield from _called(program, statement, prefix, paths)


def alias(statement: CheckedEquation) -> str | None:
    """The name of the value that an equation merely renames, or None."""
    read, dims = statement.pieces[0], statement.left.dims
    return read.array.name if isinstance(read, Read) and read.dims == dims and statement.along is None else None


def _called(program: CheckedFile, statement: Calling, prefix: str, paths: dict[str, str]) -> Iterator[Address]:
    scope = prefix + "_".join(left.array.name for left in statement.lefts)
    callee = program.functions.get(statement.function) if statement.params is None else None
    if callee is None:
        for number, left in enumerate(statement.lefts):
            paths[left.array.name] = scope if len(statement.lefts) == 1 else f"{scope}#{number}"
            yield _address(prefix, left, paths[left.array.name])
        return
    passed = zip(callee.arguments, statement.arguments, strict=True)
    given = {formal.name: paths[each.name] for formal, each in passed if isinstance(each, Array)}
    inside = list(addresses(program, callee, scope + "/", given))
    made = {**given, **{each.name.removeprefix(scope + "/"): each.path for each in inside}}
    yield from inside
    for left, name in zip(statement.lefts, callee.returned, strict=True):
        paths[left.array.name] = made[name]
        yield _address(prefix, left, made[name])


def _address(prefix: str, left: Left, path: str) -> Address:
    return Address(prefix + left.array.name, path, left.array, left.span)
