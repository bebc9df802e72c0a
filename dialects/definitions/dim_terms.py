"""Assigns the terms of a definition to the dims of each array.

    dot_general, rhs of rank 4, contracting (1, 3)        rhs[b.., n.., k..]   at rhs k = ...     -->     b: 0, n: 2, k: 1 and 3

`at`, or the op's front end, assigns some groups. The remaining dims go, in order, to the remaining groups, whose lengths follow
from the other arrays. The equation of a variadic op is copied once for each of its operands (or results).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..ground.errors import Error
from ..params import Literal, ParamsAttr
from .front_ends.by_name import FRONT_ENDS
from .ground_form import Dims
from .operators import ARITHMETIC
from .syntax_tree import Apply, Concat, Definition, Expr, Number, Param, Reading, Shape, Term, Whole, names, variables


@dataclass(frozen=True, slots=True)
class DimSite:
    """A read or a target of one copy of the equation, with the dim of each component of its terms."""

    array: int
    name: str
    terms: tuple[Term, ...]
    copy: int
    placed: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])  # (term, component, dim)


def groups(term: Term) -> tuple[str, ...]:
    """The groups of a term; the term takes one dim for each of their indices."""
    return () if isinstance(term, Whole | Concat) else tuple(var.name for var in variables(term) if var.many)


def copies(definition: Definition) -> tuple[int, frozenset[str]]:
    """The number of copies of the equation, one for each variadic operand or result, and the variables not shared by copies."""
    many = {formal.name for formal in (*definition.operands, *definition.results) if formal.variadic}
    reads = [*definition.reads()]
    # One function returns all results: a variadic result after others holds the remaining ones, a single one holds all.
    gives = len(definition.results) > 1 or (isinstance(definition.body, Apply) and definition.body.function == "@")
    more = gives and any(formal.variadic for formal in definition.results)
    if any(read.spread for read in reads) or not many or more:
        return 1, frozenset()
    count = definition.arity[0] if any(formal.variadic for formal in definition.operands) else definition.arity[1]
    terms = [term for read in (*reads, *definition.targets) for term in read.dims]
    joined = [term for term in terms if isinstance(term, Concat)]
    return count, frozenset(name for term in joined or terms for name in names(term))


class Sites:
    """Places all reads and targets of a definition on operands and results of these shapes.

    `lengths` is the number of indices of each group, by name and copy; `fresh` are the variables that copies do not share.
    """

    def __init__(self, definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> None:
        self.definition = definition
        self.params = params
        self.ins = ins
        self.outs = outs
        self.front = FRONT_ENDS[definition.front](definition, params, ins, outs) if definition.front else None
        self.lengths: dict[tuple[str, int], int] = {}
        self.sized: dict[str, tuple[int, ...]] = {}
        self.copies, self.fresh = copies(definition)
        self.table: dict[tuple[int, tuple[Term, ...], int], DimSite] = {}
        for name, source in definition.sizes:
            self.sized[name] = _integers(source, params)
            self.lengths[name, 0] = len(self.sized[name])
        self.all = [site for copy in range(self.copies) for site in self.of_copy(copy)]
        self.place(self.all)

    def shape(self, array: int) -> Shape:
        return self.ins[array] if array >= 0 else self.outs[-1 - array]

    def arrays(self, read: Reading, copy: int) -> range:
        """The operand positions of a read in one copy of the equation."""
        found = self.definition.positions(read.array)
        return found[copy : copy + 1] if len(found) > 1 and self.copies > 1 and not read.spread else found

    def of_copy(self, copy: int) -> Iterator[DimSite]:
        for read in (*self.definition.reads(), *self.definition.targets):
            for array in self.arrays(read, copy):
                site = DimSite(array, read.array, read.dims, copy)
                yield self.table.setdefault((array, read.dims, copy), site)

    def place(self, sites: list[DimSite]) -> None:
        """Assigns the terms of each site to dims; sites whose groups have known lengths come first."""
        waiting = sites
        while waiting:
            still = [site for site in waiting if not self.try_place(site)]
            if len(still) == len(waiting):
                # `i.., b..:` on several arrays: on the one of least rank, `b..` takes no dims.
                least = min(still, key=lambda site: len(self.shape(site.array)))
                if not self.try_place(least, least=True):
                    raise Error(f"`{self.definition.name}` is ambiguous for operands of these ranks")
                still.remove(least)
            waiting = still

    def dims_at(self, site: DimSite, term: Term) -> Dims | None:
        for name in names(term):
            if self.front is not None:
                return self.front.dims[site.name, name]
            for at in self.definition.at:
                if at.variable == name and at.array in (None, site.name):
                    rank = len(self.shape(site.array))
                    return tuple(dim % rank for dim in _integers(at.source, self.params))
        return None

    def try_place(self, site: DimSite, least: bool = False) -> bool:
        rank = len(self.shape(site.array))
        site.placed.clear()
        if not rank and not any(isinstance(term, Whole) for term in site.terms):
            # A scalar may be any operand of an elementwise op, so it does not determine the lengths of the groups.
            return True
        placed = [self.dims_at(site, term) for term in site.terms]
        taken = {dim for dims in placed for dim in dims or ()}
        free = [dim for dim in range(rank) if dim not in taken]
        counts = [self.length(site, term, least) if dims is None else 0 for term, dims in zip(site.terms, placed, strict=True)]
        if counts.count(None) > 1:
            return False
        left = len(free) - sum(count or 0 for count in counts)
        # Only the index vectors' last dim belongs to no term.
        if left < 0 or (None not in counts and left and self.front is None):
            raise Error(f"`{self.definition.name}` does not take an array of shape {self.shape(site.array)} as `{site.name}`")
        rest = iter(free)
        for number, (term, dims, count) in enumerate(zip(site.terms, placed, counts, strict=True)):
            if dims is None:
                dims = tuple(islice(rest, left if count is None else count))
            site.placed.extend((number, k, dim) for k, dim in enumerate(dims) if dim is not None)
            self.lengths |= {self.scope(group, site.copy): len(dims) for group in groups(term)}
        return True

    def length(self, site: DimSite, term: Term, least: bool) -> int | None:
        """How many of the free dims a term without `at` takes; None if it takes those that the other terms leave."""
        if isinstance(term, Whole) and term.name in self.sized:
            return len(self.sized[term.name])
        known = [self.lengths[scope] for group in groups(term) if (scope := self.scope(group, site.copy)) in self.lengths]
        if known:
            return known[0]
        if not groups(term) and not (isinstance(term, Whole) and term.many):
            return 1
        return 0 if least and isinstance(term, Whole) else None

    def scope(self, name: str, copy: int) -> tuple[str, int]:
        return (name, copy if name in self.fresh else 0)


def _integers(source: Expr, params: ParamsAttr) -> tuple[int, ...]:
    """The dims or sizes that a source gives, such as `k = axes` after `at`: an integer, or several."""
    match source:
        case Apply(name, (*args, Number(int(right)))):
            function = ARITHMETIC[name].function
            return tuple(function(each, right) for each in _integers(args[0], params)) if args else (function(right),)
        case Number(found):
            value: Literal = found
        case Param():
            value = source.value(params)
        case _:
            raise TypeError(source)
    return tuple(each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, int))
