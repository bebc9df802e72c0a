"""The tree of index notation, and `Definition`: the meaning of a named op as such a tree.

One tree serves three languages, which differ in their indices and arrays. In a definition these are variables and names; in
its ground form (`ground_form`), numbers; in a program that a user writes (`compiler.notation.terms`), objects with ranges
and types.

    dot_general(lhs, rhs)   out[b.., m.., n..] = sum(k..) lhs[b.., m.., k..] * rhs[b.., n.., k..]

A `Definition` is one line of `definitions.def`. It has no field for a tiling or a device-local body: `tilings.bind` derives
the tilings from the tree, `evaluate` runs it, and `rewrites.linearity` decides which sums may move through it.

Terms: a *variable* is an index (`i`) or a group of indices (`i..`, any number of them, including zero); a *read* takes elements
of an operand; a *fold* binds variables with a monoid; a *guard* `[v.. = ids[i..] + w..]` is true or false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from typing import ClassVar, Generic, TypeAlias, TypeVar, cast

from ..ground.errors import Span
from ..params import Literal, ParamsAttr, Record

Shape = tuple[int, ...]
Value = tuple[str, Shape]
"""The dtype (a NumPy name) and the shape of an operand or a result."""

V = TypeVar("V", covariant=True)
"""The type of a number's value."""
I = TypeVar("I", covariant=True)  # noqa: E741
"""The type of an index."""
A = TypeVar("A", covariant=True)
"""The type of an array."""
D = TypeVar("D", covariant=True)
"""The type of a read's dim."""
E = TypeVar("E", covariant=True)
"""The type of an expression."""

# --- the tree; a node may have a span, which equality ignores -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number(Generic[V]):
    """A literal; None is the absent parameter, `none`."""

    value: V
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Group(Generic[I]):
    """A product of indices, major to minor: `i`, `(g c)`. The empty product is the constant 0.

    As a dim of a read it gives the indices of the dim; as an expression it is the index used as a value.
    """

    indices: tuple[I, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Affine(Generic[I]):
    """A dim at `(offset + sum(index * factor)) / divisor`; outside the dim, nothing is read.

    `moved` names the parameter that is added to the offset (or subtracted, with sign -1), so that another value of it reads
    other elements. If `moved` is the extent of an index, the position follows from the types. `scaled` names the parameter that
    multiplies the one index.
    """

    offset: int
    factors: tuple[tuple[I, int], ...]
    divisor: int = 1
    moved: tuple[Param | Size, int] | None = None
    scaled: Param | None = None

    @property
    def indices(self) -> tuple[I, ...]:
        return tuple(index for index, _ in self.factors)


@dataclass(frozen=True, slots=True)
class Whole:
    """A dim, or with `many` all remaining dims, that the op needs unpartitioned: `j:`."""

    name: str
    many: bool = False
    indices: ClassVar[tuple[()]] = ()


@dataclass(frozen=True, slots=True)
class Concat(Generic[I]):
    """A dim that is the sum of the ranges of several copies of the equation, one after another: `+j`."""

    indices: tuple[I, ...]
    copy: int = 0


@dataclass(frozen=True, slots=True)
class Read(Generic[A, D]):
    """An array at indices. With `spread`, every operand of a variadic one: `cases*[i..]`."""

    array: A
    dims: tuple[D, ...]
    spread: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Apply(Generic[E]):
    """A function applied elementwise: an operator (`operators`), a scalar function, or `@`, the op's own function.

    `params` (text) and `dtype` (of the result) are set in languages that have them.
    """

    function: str
    args: tuple[E, ...]
    dtype: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)
    params: str = ""


@dataclass(frozen=True, slots=True)
class Fold(Generic[I, E]):
    """`monoid` over all values of the indices: `sum(k..) body`. `last` keeps the last one, in row-major order.

    `sum(k <= j) body` is a prefix fold over the values up to the value of `upto`, an index of the same extent. With
    `backwards`, it is over that value and those after it.
    """

    monoid: str
    indices: tuple[I, ...]
    body: E
    upto: tuple[I, ...] = ()
    backwards: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Otherwise(Generic[E]):
    """`body else default`: the default where nothing is defined (no guard holds, no element is written)."""

    body: E
    default: E


def subtrees(node: object) -> tuple[object, ...]:
    """The direct children of a node of the tree, in any language, including the dims of reads."""
    match cast("Apply[object] | Read[object, object] | Fold[object, object] | Guard | Otherwise[object] | None", node):
        case Apply(args=inside) | Read(dims=inside):
            return inside
        case Fold(body=inside) | Guard(start=inside):
            return (inside,)
        case Otherwise(body, default):
            return (body, default)
        case _:
            return ()


T = TypeVar("T")


def factors(body: T) -> list[T]:
    """The factors of a product, in any language."""
    if isinstance(body, Apply) and body.function == "mul":
        return [each for arg in cast("Apply[T]", body).args for each in factors(arg)]
    return [body]


# --- the leaves of definitions -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    """An index, or with `many` a group of them: `i`, `i..`."""

    name: str
    many: bool = False


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the op, or a part of one: `padding_config.*.0` is the first part of each of its elements."""

    name: str
    steps: tuple[str, ...] = ()

    def value(self, params: ParamsAttr) -> Literal:
        """Returns the parameter's value, or the part of it. Raises KeyError if the op has no such parameter."""
        return _steps(params[self.name], self.steps)

    def of(self, component: int) -> Param:
        """The part for one component of a group: of `padding.*.0` it is `padding.1.0` for the second component."""
        steps = tuple(str(component) if step == "*" else step for step in self.steps)
        return Param(self.name, steps if "*" in self.steps else (*steps, str(component)))

    def put(self, params: ParamsAttr, *values: int) -> ParamsAttr:
        """The parameters with these values in this part and in the parts after it, such as low and high padding."""
        return params.changed(**{self.name: _put(params[self.name], self.steps, values)})


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


def _put(value: Literal, steps: tuple[str, ...], values: tuple[int, ...]) -> Literal:
    assert isinstance(value, tuple)
    at = int(steps[0])
    if len(steps) > 1:
        return (*value[:at], _put(value[at], steps[1:], values), *value[at + 1 :])
    return (*value[:at], *values, *value[at + len(values) :])


@dataclass(frozen=True, slots=True)
class Size:
    """The extent of an index, or of each index of a group: `|w..|`."""

    variable: Var


@dataclass(frozen=True, slots=True)
class Guard:
    """`[v.. = ids[b..] + w..]`: the window `w..` lies on `v..`, starting where `ids` says.

    As a factor it keeps or drops the product: where it is false, the product is the unit of the fold around it. The op's front
    end says which component of the index vector `ids[b.., :]` moves which of `v..`. Without a window, `[v = ids[b]]`, each
    element of `ids` is one index.
    """

    variable: Var
    start: Reading
    window: Var | None


Expr: TypeAlias = (
    "Number[int | None] | Group[Var] | Param | Size | Reading | Apply[Expr] | Fold[Var, Expr] | Guard | Otherwise[Expr]"
)
Term: TypeAlias = "Expr | Whole | Concat[Var]"
Reading: TypeAlias = "Read[str, Term]"
Leaf: TypeAlias = "Reading | Number[int | None] | Param"


@dataclass(frozen=True, slots=True)
class Formal:
    """An operand or a result; a variadic one stands for any number."""

    name: str
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class At:
    """`at rhs k = axes`: which dims of an array (of all arrays, if `array` is None) a variable takes; -1 is its last dim.

    The source is a parameter, a number, or a parameter minus a number (`left_side - 2`, where a boolean is 1 or 0).
    """

    array: str | None
    variable: str
    source: Expr


@dataclass(frozen=True, slots=True)
class Partial:
    """`sum(b..) dw[d:]` on the left of `=`: this result is folded over indices that the other results have."""

    result: str
    monoid: str
    variables: tuple[Var, ...]


@dataclass(frozen=True)
class Definition:
    """The meaning of one op.

    `arity` has two numbers: how many arrays each variadic operand stands for when bound, and each variadic result. On one side
    the number is the same for all. A variadic result beside others may stand for none.

    `extents` are the JAX parameters that hold extents. They follow from the types, so the IR does not store them, and `restore`
    computes them. `dropped` adds the parameters that Partita ignores. The IR stores a parameter of `defaults` only if it has
    another value. `backwards` is the parameter that turns prefix folds into suffix folds.
    """

    name: str
    operands: tuple[Formal, ...]
    results: tuple[Formal, ...]
    targets: tuple[Reading, ...]
    body: Expr
    at: tuple[At, ...] = ()
    ravel: tuple[str, str] | None = None
    sizes: tuple[tuple[str, Expr], ...] = ()
    extents: tuple[tuple[str, Expr], ...] = ()
    defaults: tuple[tuple[str, Literal], ...] = ()
    forgotten: frozenset[str] = frozenset()
    front: str | None = None
    backwards: str | None = None
    partials: tuple[Partial, ...] = ()
    text: str = field(default="", compare=False)
    arity: tuple[int, int] = (1, 1)

    @cached_property
    def dropped(self) -> frozenset[str]:
        """The names of JAX parameters that the IR does not hold."""
        return self.forgotten | {name for name, _ in self.extents}

    def with_arity(self, operands: int, results: int) -> Definition:
        """This definition for the given numbers of operands and results; unchanged if nothing in it is variadic."""
        arity = _stands_for(self.operands, operands), _stands_for(self.results, results)
        if arity != self.arity and arity not in self._of_arity:
            self._of_arity[arity] = replace(self, arity=arity)
        return self if arity == self.arity else self._of_arity[arity]

    def positions(self, name: str) -> range:
        """The operand positions of `name`; results count -1, -2, ..."""
        return self._positions[name]

    @cached_property
    def _of_arity(self) -> dict[tuple[int, int], Definition]:
        return {}

    @cached_property
    def _positions(self) -> dict[str, range]:
        found: dict[str, range] = {}
        sides = (self.operands, 1, self.arity[0]), (self.results, -1, self.arity[1])
        for formals, step, arity in sides:
            at = 0 if step == 1 else -1
            for formal in formals:
                end = at + step * (arity if formal.variadic else 1)
                found[formal.name] = range(at, end, step)
                at = end
        return found

    @property
    def title(self) -> str:
        """The name without its distinguishing parts: `lib.softmax.2` is one of several ops called `softmax`."""
        return titled(self.name)

    def reads(self) -> Iterator[Reading]:
        """Every read of an operand, including those inside guards."""
        return (each for each in nodes(self.body) if isinstance(each, Read))

    # Facts that follow from the body, so that no list of ops is needed

    @cached_property
    def guards(self) -> tuple[Guard, ...]:
        return tuple(each for each in nodes(self.body) if isinstance(each, Guard))

    @cached_property
    def starts(self) -> range:
        """The operands with the index vectors at which windows start, or the components of one; empty without windows."""
        windows = [guard for guard in self.guards if guard.window is not None]
        return self.positions(windows[0].start.array) if windows else range(0)

    def looks_up(self, guard: Guard) -> bool:
        """Whether a guard determines which elements are read, not which are written: its index is folded."""
        return all(guard.variable.name not in names(term) for target in self.targets for term in target.dims)

    @cached_property
    def moved(self) -> tuple[Leaf, ...]:
        """The reads and constants from which the op only moves, chooses or casts its results; () for an op that computes."""
        return _moved(self.body)

    @property
    def moves(self) -> bool:
        """Whether the op only moves, chooses or casts elements of operands. It computes nothing, so they may be of any type."""
        return any(isinstance(each, Read) for each in self.moved)

    @property
    def is_elementwise(self) -> bool:
        """Whether each element is computed from those of the operands at its own index."""
        return not self.at and not self.takes_whole_dims and all(read.dims == self.targets[0].dims for read in self.reads())

    @property
    def terms(self) -> list[Term]:
        """The terms of the body and of the targets' dims."""
        return [*nodes(self.body), *(dim for target in self.targets for dim in target.dims)]

    @cached_property
    def takes_whole_dims(self) -> bool:
        """Whether an element needs all of a dim, as one of a Cholesky factor does."""
        return any(isinstance(each, Whole) for each in self.terms)

    @cached_property
    def maps(self) -> bool:
        """Whether each element of a result comes from few elements of the operands, so that its uses can compute it again."""
        return not self.takes_whole_dims and all(_has_one_term(each) for each in self.terms if isinstance(each, Fold))

    @cached_property
    def apart(self) -> bool:
        """Whether the op returns each of any number of operands unchanged, so that each is placed by itself."""
        unchanged = isinstance(self.body, Read) and [self.body.dims] == [target.dims for target in self.targets]
        return unchanged and not self.at and all(formal.variadic for formal in (*self.operands, *self.results))


def _has_one_term(fold: Fold[Var, Expr]) -> bool:
    """Whether guards look up every index of the fold."""
    return set(fold.indices) <= {each.variable for each in factors(fold.body) if isinstance(each, Guard)}


@cache
def titled(name: str) -> str:
    """The name of an op without the parts that distinguish it from others of that name."""
    return next(part for part in reversed(name.split(".")) if not part.isdecimal())


def _stands_for(formals: tuple[Formal, ...], count: int) -> int:
    """How many of `count` arrays each variadic formal stands for; 1 if none is variadic."""
    many = sum(formal.variadic for formal in formals)
    return (count - len(formals) + many) // many if many else 1


def children(term: Term) -> tuple[Term, ...]:
    """The expressions directly inside this one, and the dims of a read."""
    return cast("tuple[Term, ...]", subtrees(term))


def with_reads(expr: Expr, change: Callable[[Reading], Reading]) -> Expr:
    """The expression with each read of an operand changed by `change`."""
    match expr:
        case Read():
            return change(expr)
        case Apply(args=args):
            return replace(expr, args=tuple(with_reads(each, change) for each in args))
        case Fold(body=body):
            return replace(expr, body=with_reads(body, change))
        case Otherwise(body, default):
            return Otherwise(with_reads(body, change), with_reads(default, change))
        case Guard(start=start):
            return replace(expr, start=change(start))
        case _:
            return expr


def variables(term: Term) -> tuple[Var, ...]:
    """The variables of a term, including the one that `at` may name."""
    match term:
        case Group(indices) | Concat(indices):
            return indices
        case Whole(name, many):
            return (Var(name, many),)
        case Apply(_, args):
            return tuple(var for arg in args for var in variables(arg))
        case _:
            return ()


def names(term: Term) -> tuple[str, ...]:
    return tuple(var.name for var in variables(term))


def nodes(expr: Term) -> Iterator[Term]:
    """The expression, all expressions inside it, and the dims of reads."""
    yield expr
    for child in children(expr):
        yield from nodes(child)


def _moved(expr: Expr) -> tuple[Leaf, ...]:
    inside: Sequence[Expr] = ()
    match expr:
        case Read() | Number() | Param():
            return (expr,)
        case Apply("cast", args):
            inside = args
        case Apply("select", (_, *cases)):
            inside = cases
        case Otherwise(body, default):
            inside = (body, default)
        case Fold("last" | "sum" as monoid, indices, body):
            guarded = {each.variable for each in factors(body) if isinstance(each, Guard)}
            others = [each for each in factors(body) if not isinstance(each, Guard)]
            # A sum that looks up every index that it folds has one term.
            inside = others if len(others) == 1 and (monoid == "last" or guarded == set(indices)) else ()
        case _:
            pass
    found = [_moved(each) for each in inside]
    return tuple(chain(*found)) if all(found) else ()
