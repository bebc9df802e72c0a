"""Definitions: what every named op means, in index notation.

A `Definition` is one line of `definitions.def` as a tree. It has no field in which a tiling or a device-local body could be
written: `instance.bind` reads the tilings off the tree, `evaluate` runs it, `rewrites.linearity` asks what a sum may pass.

    dot_general(lhs, rhs)   out[b.., m.., n..] = sum(k..) lhs[b.., m.., k..] * rhs[b.., n.., k..]

Words of the tree: a *variable* is an index (`i`) or a group of indices (`i..`, any number of them, also none); a *read* takes
an operand apart; a *fold* binds variables with a monoid; a *guard* `[v.. = ids[i..] + w..]` is true or false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias

from ..params import Literal, ParamsAttr, Record

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Var:
    """An index, or with `many` a group of them: `i`, `i..`."""

    name: str
    many: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A literal; `none` is the absent parameter."""

    value: int | None


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the op, or a part of one: `padding_config.*.0` is the first of each of its elements."""

    name: str
    steps: tuple[str, ...] = ()

    def value(self, params: ParamsAttr) -> Literal:
        """Raises KeyError if the op has no such parameter."""
        return _steps(params[self.name], self.steps)


def _steps(value: Literal, steps: tuple[str, ...]) -> Literal:
    for number, step in enumerate(steps):
        match value:
            case Record():
                value = value[step]
            case tuple() if step == "*":
                return tuple(_steps(each, steps[number + 1 :]) for each in value)
            case tuple() if step.endswith(":"):
                value = value[int(step[:-1]) :]
            case tuple():
                value = value[int(step)]
            case _:
                raise KeyError(step)
    return value


@dataclass(frozen=True, slots=True)
class Size:
    """The extent of an index, or of each index of a group: `|w..|`."""

    variable: Var


@dataclass(frozen=True, slots=True)
class Whole:
    """A dim, or with `many` all dims that are left, which the op reads or writes as a whole: `j:`."""

    name: str
    many: bool = False


@dataclass(frozen=True, slots=True)
class Concat:
    """A dim that is the sum of the dims `j` of several arrays: `+j`."""

    name: str


@dataclass(frozen=True, slots=True)
class Join:
    """A dim that is the product of indices, major to minor: `(g c)`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """An operand at indices. With `spread` every operand of a variadic one: `cases*[i..]`."""

    name: str
    terms: tuple[Term, ...]
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Arith:
    """`+`, `-`, `*` or `/` of two expressions."""

    sign: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `scalars` applied elementwise; `@` is the one that has the op's own name."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """`monoid` over all values of the variables: `sum(k..) body`. `last` keeps the last one, in row-major order.

    `sum(k <= j) body` is a prefix fold: over the values up to that of `upto`, an index of the same extent.
    """

    monoid: str
    variables: tuple[Var, ...]
    body: Expr
    upto: Var | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """`[v.. = ids[b..] + w..]`: the window `w..` that starts where `ids` says lies on `v..`.

    As a factor it keeps or drops the product: where it is false, the product is the unit of the fold around it. Which
    component of the index vector `ids[b.., :]` moves which of `v..` the op's front end says. Without a window,
    `[v = ids[b]]`, each element of `ids` is one index.
    """

    variable: Var
    start: Read
    window: Var | None


@dataclass(frozen=True, slots=True)
class Otherwise:
    """`body else default`: the default where nothing is defined (no guard holds, no element is written)."""

    body: Expr
    default: Expr


Source: TypeAlias = "Param | Number | Arith"
"""What says dims or sizes: a parameter, a number, or a parameter less a number (`left_side - 2`: a truth is 1 or 0)."""
Expr: TypeAlias = "Var | Number | Param | Size | Read | Arith | Call | Fold | Guard | Otherwise"
Term: TypeAlias = "Expr | Whole | Concat | Join"


@dataclass(frozen=True, slots=True)
class Formal:
    """An operand or a result; a variadic one stands for any number."""

    name: str
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class At:
    """`at rhs k = axes`: which dims of an array (of all arrays, if `array` is None) a variable takes; -1 is its last dim."""

    array: str | None
    variable: str
    source: Source


@dataclass(frozen=True, slots=True)
class Partial:
    """`sum(b..) dw[d:]` left of `=`: this one of several results is folded over indices that the others have."""

    result: str
    monoid: str
    variables: tuple[Var, ...]


@dataclass(frozen=True)
class Definition:
    """The meaning of one op.

    `arity` is how many operands, and how many results, each variadic one stands for, once bound: all those of one side stand
    for equally many, and one beside results of its own may stand for none.

    `extents` are the JAX parameters that say extents: they follow from the types, so they are not stored in the IR and
    `restore` gives them back. `dropped` adds those that say nothing to us. `backwards` is the parameter that turns prefix folds
    around: they then fold what is not before.
    """

    name: str
    operands: tuple[Formal, ...]
    results: tuple[Formal, ...]
    targets: tuple[Read, ...]
    body: Expr
    at: tuple[At, ...] = ()
    ravel: tuple[str, str] | None = None
    sizes: tuple[tuple[str, Source], ...] = ()
    extents: tuple[tuple[str, Expr], ...] = ()
    forgotten: frozenset[str] = frozenset()
    front: str | None = None
    backwards: str | None = None
    partials: tuple[Partial, ...] = ()
    text: str = field(default="", compare=False)
    arity: tuple[int, int] = (1, 1)

    @property
    def dropped(self) -> frozenset[str]:
        """The names of JAX parameters that the IR does not hold."""
        return self.forgotten | {name for name, _ in self.extents}

    def with_arity(self, operands: int, results: int) -> Definition:
        """This definition for so many operands and results; itself, if nothing in it is variadic."""
        arity = _stands_for(self.operands, operands), _stands_for(self.results, results)
        return self if arity == self.arity else _with_arity(self, arity)

    def positions(self, name: str) -> range:
        """The operand positions that `name` stands for; results count -1, -2, ..."""
        found = _positions(self).get(name)
        assert found is not None, f"{self.name} has no {name}"
        return found

    @property
    def title(self) -> str:
        """The name that its text says: `lib.softmax.2` is one of several ops called `softmax`."""
        return titled(self.name)

    def reads(self) -> Iterator[Read]:
        """Every read of an operand, those inside guards too."""
        return _reads(self.body)


def titled(name: str) -> str:
    """The name of an op without what tells it from its namesakes."""
    return next(part for part in reversed(name.split(".")) if not part.isdecimal())


def _stands_for(formals: tuple[Formal, ...], count: int) -> int:
    """How many arrays each variadic one is, of `count` in all; 1 if none is variadic."""
    many = sum(formal.variadic for formal in formals)
    return (count - len(formals) + many) // many if many else 1


@cache
def _with_arity(definition: Definition, arity: tuple[int, int]) -> Definition:
    return replace(definition, arity=arity)


@cache
def _positions(definition: Definition) -> dict[str, range]:
    found: dict[str, range] = {}
    sides = (definition.operands, 1, definition.arity[0]), (definition.results, -1, definition.arity[1])
    for formals, step, arity in sides:
        at = 0 if step == 1 else -1
        for formal in formals:
            end = at + step * (arity if formal.variadic else 1)
            found[formal.name] = range(at, end, step)
            at = end
    return found


def children(expr: Term) -> tuple[Term, ...]:
    """The expressions directly inside one."""
    match expr:
        case Arith(_, left, right) | Otherwise(left, right):
            return (left, right)
        case Call(_, args):
            return args
        case Fold(_, _, body):
            return (body,)
        case Guard(_, start, _):
            return (start,)
        case Read(_, terms, _):
            return terms
        case _:
            return ()


def _reads(expr: Term) -> Iterator[Read]:
    if isinstance(expr, Read):
        yield expr
    for child in children(expr):
        yield from _reads(child)
