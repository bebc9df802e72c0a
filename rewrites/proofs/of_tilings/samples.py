"""Operands of a definition for small ranks, with a size of its own for each index.

A group of indices gets 0 to 2 of them. The dims that a parameter names stand where the definition has them, or before all
others in the reverse order. The sizes of a reshape are written here, for no index says them.

    dot_general, b: 0, m: 1, n: 1, k: 1    -->    lhs[m0, k0], rhs[n0, k0] -> out[m0, n0], contracting ((1), (1))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, TypeAlias, cast

from ....dialects.definitions.dim_terms import copies
from ....dialects.definitions.syntax_tree import (
    Apply,
    Concat,
    Definition,
    Expr,
    Fold,
    Formal,
    Group,
    Param,
    Reading,
    Size,
    Term,
    Value,
    Var,
    Whole,
    nodes,
    variables,
)
from ....dialects.ground.monoids import MERGE, SELECTIONS
from ....dialects.params import Literal, ParamsAttr, Record

Dim: TypeAlias = tuple[tuple[str, ...], ...]
"""A sum of products of sizes."""
Typed: TypeAlias = tuple[str, tuple[Dim, ...]]
"""A dtype, and dims."""

RANKS = range(3)
RESHAPES = "ab c -> a bc, a bc -> ab c, ab -> a b, a b -> ab, abc -> a b c, a 1 b -> a b, a b -> a 1 b, a -> 1 a 1"
"""What a reshape may do to dims: each is a product of sizes."""


class NoSample(Exception):
    """Raised for a definition whose operands do not follow from its text; the message says why."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A definition for given ranks, dtypes and parameters."""

    definition: Definition
    params: ParamsAttr
    operands: tuple[Typed, ...]
    results: tuple[Typed, ...]

    @property
    def names(self) -> list[str]:
        """The sizes, in the order in which they occur."""
        every = (each for _, dims in (*self.operands, *self.results) for dim in dims for term in dim for each in term)
        return list(dict.fromkeys(every))

    def types(self, size: Callable[[str], int]) -> tuple[list[Value], list[Value]]:
        """The types of operands and results for these sizes."""
        ins, outs = ([(dtype, tuple(_extent(dim, size) for dim in dims)) for dtype, dims in side] for side in self.sides)
        return ins, outs

    @property
    def sides(self) -> tuple[tuple[Typed, ...], tuple[Typed, ...]]:
        return self.operands, self.results

    def __str__(self) -> str:
        ins, outs = (", ".join(f"[{', '.join(map(_text, dims))}]" for _, dims in side) for side in self.sides)
        return f"{self.definition.name}: {ins} -> {outs} {self.params.text} {self.operands[0][0] if self.operands else ''}"


def _extent(dim: Dim, size: Callable[[str], int]) -> int:
    return sum(prod(size(name) for name in term) for term in dim)


def _text(dim: Dim) -> str:
    return " + ".join("*".join(term) or "1" for term in dim)


def samples(definition: Definition) -> list[Sample]:
    """All samples of a definition. Raises NoSample if there are none."""
    if (why := unsampled(definition)) is not None:
        raise NoSample(why)
    # Dims that parameters name may stand first anyway.
    return list({str(each): each for each in _every(definition)}.values())


def _every(definition: Definition) -> Iterator[Sample]:
    bound = definition.with_arity(_count(definition.operands), _count(definition.results))
    if definition.ravel is not None:
        for text in RESHAPES.split(", "):
            left, right = (tuple(_product(dim) for dim in side.split()) for side in text.split(" -> "))
            yield Sample(bound, ParamsAttr.of(), (("float32", left),), (("float32", right),))
        return
    groups = sorted({name for read in _arrays(bound) for term in read.dims for name in _groups(term)})
    for ranks in product(RANKS, repeat=len(groups)):
        # Of many groups, all have two indices or each has one at most.
        if len(groups) < 3 or max(ranks) < 2 or min(ranks) == 2:
            for leads, backwards, dtype in product(_leads(bound), _backwards(bound), _dtypes(bound)):
                yield _Writer(bound, dict(zip(groups, ranks, strict=True)), leads).sample(dtype, backwards)
    full = _Writer(bound, dict.fromkeys(groups, 1), False).sample(_dtypes(bound)[0], dict(*_backwards(bound)[:1]))
    for operand, (dtype, dims) in enumerate(full.operands):
        # An operand of an elementwise op may be a scalar. What moves or maps elements may repeat the one element of a dim.
        others: list[tuple[Dim, ...]] = [()] if definition.is_elementwise and _repeats(definition) and dims else []
        others += [(*dims[:at], ((),), *dims[at + 1 :]) for at in range(len(dims)) if _repeats(definition)]
        for each in others:
            yield replace(full, operands=(*full.operands[:operand], (dtype, each), *full.operands[operand + 1 :]))


def _groups(term: Term) -> list[str]:
    """The groups of a term. One that is unpartitioned takes no dims."""
    inside = variables(term) if not isinstance(term, Whole) else ()
    return [var.name for var in (*inside, *_inside(term)) if var.many]


def _repeats(definition: Definition) -> bool:
    terms = [each for read in _arrays(definition) for each in read.dims]
    takes_rows = any(isinstance(each, Fold) for each in nodes(definition.body)) or any(
        isinstance(each, Whole) for each in terms
    )
    return not takes_rows and not any(isinstance(each, Concat) for each in terms)


def _product(text: str) -> Dim:
    return (tuple(text) if text != "1" else (),)


def _count(formals: Sequence[Formal]) -> int:
    return sum(2 if each.variadic else 1 for each in formals)


def _arrays(definition: Definition) -> list[Reading]:
    return [*definition.reads(), *definition.targets]


def unsampled(definition: Definition) -> str | None:
    """Why the operands of a definition do not follow from its text; None if they do."""
    terms = [term for read in _arrays(definition) for term in read.dims]
    if definition.guards:
        return "looks indices up"
    if (
        definition.front is not None
        or definition.sizes
        or any(isinstance(each, Param) for term in terms for each in nodes(term))
    ):
        return "parameters give the sizes of its windows"
    if any(isinstance(term, Group) and len(term.indices) > 1 for term in terms):
        return "dims are products of indices that operands share"
    return None


def _leads(definition: Definition) -> Sequence[bool]:
    """Whether the dims that parameters name may stand before all others."""
    movable = definition.at and all(isinstance(at.source, Param) for at in definition.at)
    return (False, True) if movable else (False,)


def _backwards(definition: Definition) -> Sequence[dict[str, Literal]]:
    name = definition.backwards
    return [{name: flag} for flag in (False, True)] if name is not None else [{}]


def _dtypes(definition: Definition) -> Sequence[str]:
    folds = {each.monoid for each in nodes(definition.body) if isinstance(each, Fold)}
    return ("bool", "int32") if folds & {"all", "any"} else ("int32",) if "xor" in folds else ("float32",)


@dataclass(eq=False)
class _Writer:
    """Writes a sample. `leads`: dims that parameters name stand first."""

    definition: Definition
    ranks: Mapping[str, int]
    leads: bool
    found: dict[str, Any] = field(default_factory=dict[str, Any])
    """The parameters so far: dims, or fields of such."""

    def sample(self, dtype: str, flags: Mapping[str, Literal]) -> Sample:
        copied, fresh = copies(self.definition)
        self.copied, self.fresh = copied, fresh
        reads = {read.array: read for read in _arrays(self.definition)}
        sides = [
            tuple(
                (dtype, self.dims(reads[formal.name], number if copied > 1 else 0))
                for formal in side
                for number, _ in enumerate(self.definition.positions(formal.name))
            )
            for side in (self.definition.operands, self.definition.results)
        ]
        # A parameter that is a value of its own may be any.
        values: dict[str, Literal] = {each.name: 3 for each in _values(self.definition.body)}
        if any(isinstance(each, Fold) and each.monoid == MERGE for each in nodes(self.definition.body)):
            values["num_keys"] = 1
        params = ParamsAttr.of(**values, **flags, **{name: _built(each) for name, each in self.found.items()})
        *others, (last, dims) = sides[1]
        # What selects elements gives their positions.
        selects = any(isinstance(each, Fold) and each.monoid in SELECTIONS for each in nodes(self.definition.body))
        return Sample(self.definition, params, sides[0], (*others, ("int32" if selects else last, dims)))

    def dims(self, read: Reading, copy: int) -> tuple[Dim, ...]:
        named: list[tuple[str, Dim]] = []
        for term in read.dims:
            named += [(var.name, dim) for var in variables(term) or _inside(term) for dim in self.of(term, var, copy)]
        sources = {at.variable: at.source for at in self.definition.at if at.array in (None, read.array)}
        if self.leads:
            named = [
                *reversed([each for each in named if each[0] in sources]),
                *(each for each in named if each[0] not in sources),
            ]
        for variable, source in sources.items():
            own = [at for at, (name, _) in enumerate(named) if name == variable]
            if variable in self.ranks:
                # In the order of the group's indices.
                self.put(source, tuple(reversed(own) if self.leads else own))
            elif own:
                self.put(source, own[0])
        return tuple(dim for _, dim in named)

    def of(self, term: Term, var: Var, copy: int) -> list[Dim]:
        """The dims of a variable."""
        if isinstance(term, Concat):
            return [tuple((f"{var.name}.{number}",) for number in range(self.copied))]
        var = self.same.get(var, var)
        name = f"{var.name}.{copy}" if var.name in self.fresh and self.copied > 1 else var.name
        return [((f"{name}{number}",),) for number in range(self.ranks.get(var.name, 0))] if var.many else [((name,),)]

    @cached_property
    def same(self) -> dict[Var, Var]:
        """A prefix fold is over as many values as its limit has, and what is merged has as many as before."""
        folds = [each for each in nodes(self.definition.body) if isinstance(each, Fold)]
        found = {fold.indices[0]: fold.upto[0] for fold in folds if fold.upto}
        merged = [Var(at.variable) for at in self.definition.at if any(fold.monoid == MERGE for fold in folds)]
        return found | dict.fromkeys(merged[1:], *merged[:1])

    def put(self, source: Expr, dims: int | tuple[int, ...]) -> None:
        match source:
            case Param(name, steps):
                inside, last = self.found, name
                for step in steps:
                    inside, last = inside.setdefault(last, {}), step
                inside[last] = dims
            case Apply("sub", (Param(name, ()), _)):
                self.found[name] = True
            case _:
                pass


def _inside(term: Term) -> tuple[Var, ...]:
    """The variables whose extents a term is made of."""
    return tuple(each.variable for each in nodes(term) if isinstance(each, Size))


def _values(body: Expr) -> list[Param]:
    return [each for each in nodes(body) if isinstance(each, Param)]


def _built(found: Any) -> Literal:
    if not isinstance(found, dict):
        return cast(Literal, found)
    parts = {str(name): _built(each) for name, each in cast(dict[str, Any], found).items()}
    if any(not name.isdecimal() for name in parts):
        return Record("numbers", tuple(parts.items()))
    return tuple(parts.get(str(number), ()) for number in range(max(map(int, parts)) + 1))
