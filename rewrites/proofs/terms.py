"""The world in which sizes, coordinates, indices and elements are terms of the solver, for all sizes at once.

A fold is an application of a function of its own, one for each body, and a quotient one of the function `quotient`. The solver
knows of them what these lemmas say, each at the points that occur. `lemmas.py` proves them.

    digits        m > 0  -->  i = quotient(i, m) * m + remainder(i, m)  and  0 <= remainder(i, m) < m
    one term      f(c) = 0 for all c but w  -->  the sum of f is f(w), or 0 if w is none of the range
    congruence    f(c) = g(c) for all c  -->  the folds of f and g over one range are equal
    sums          the sum of f + g is the sum of f and the sum of g
    regrouping    the fold of rows 0 to q * m + r is that of the folds of q blocks, and of the rest
    order         two arrays are equal in order, if for each bound as many elements of both are below it;
                  and as many elements are below a bound if they are in order
    renumbering   the sum of f(c, i) over windows is that of g over rows, if each row is the own one of one window,
                  and f is zero for all others

`for all c` is the negation of a counter-example: a fresh constant at which the terms differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from .solver import z3
from .values import Axis, Complex, Number, Truth, as_complex
from .world import NoMeaning, inverse

COUNT = "count"
"""The monoid of counts: sums of which proofs ask less."""


@dataclass(frozen=True, slots=True, eq=False)
class FoldTerm:
    """A fold that occurs, and the function that its terms are made by."""

    value: Any
    monoid: str
    size: Any
    body: Callable[[Number], Number]
    level: int
    """How many lemmas brought it up, one after another."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderTerm:
    """An element of an array in order that occurs."""

    value: Any
    sizes: Sequence[Any]
    body: Callable[..., Number]
    place: Any


@dataclass(eq=False)
class Terms:
    """The solver's world."""

    kind: str = "integers"
    cast: str = "keeps"
    rounds: int = 2
    """How often lemmas are used on what lemmas bring up."""
    facts: list[Any] = field(default_factory=list[Any])
    """What is known at the points that occur."""
    points: dict[int, Any] = field(default_factory=dict[int, Any])
    """The constants that stand for a coordinate or an index: any one."""
    folds: dict[int, FoldTerm] = field(default_factory=dict[int, FoldTerm])
    sizes: dict[int, Any] = field(default_factory=dict[int, Any])
    """Those of all folds, also inside of others."""
    orders: dict[int, OrderTerm] = field(default_factory=dict[int, OrderTerm])
    splits: dict[tuple[int, int], tuple[Any, Any]] = field(default_factory=dict[tuple[int, int], tuple[Any, Any]])
    """The indices and blocks whose quotients occur."""
    axes: list[Any] = field(default_factory=list[Any])
    """The sizes of the axes."""
    windows: list[Axis] = field(default_factory=list[Axis])
    """The axes whose iterations have windows."""
    renumberings: list[tuple[Any, Any, Any]] = field(default_factory=list[tuple[Any, Any, Any]])
    """Sums that are equal, if each of two facts cannot hold."""
    grown: Any = None
    """The size over which a proof goes by induction. `one` and `next` say for which size the terms are now."""
    stage: str = ""
    functions: dict[str, Any] = field(default_factory=dict[str, Any])
    bound: list[Any] = field(default_factory=list[Any])
    fresh: int = 0
    level: int = 0

    @property
    def element(self) -> Any:
        """The sort of elements."""
        return z3.IntSort() if self.kind == "integers" else z3.RealSort()

    def point(self, name: str, sort: Any = None) -> Any:
        """A new constant that stands for any coordinate or index, or for any number of this sort."""
        self.fresh += 1
        made = z3.Const(f"{name}!{self.fresh}", z3.IntSort() if sort is None else sort)
        self.points[made.get_id()] = made
        return made

    @property
    def indices(self) -> list[Any]:
        """The points that are coordinates or indices."""
        return [each for each in self.points.values() if z3.is_int(each)]

    def at_points(self, name: str, points: list[Any], sort: Any) -> Any:
        """A function of its own at these points."""
        if not points:
            return z3.Const(name, sort)
        sorts = [point.sort() for point in points]
        key = f"{name}/{' '.join(map(str, sorts))}"
        return self.functions.setdefault(key, z3.Function(name, *sorts, sort))(*points)

    def function(self, name: str, arguments: int, sort: Any) -> Any:
        return self.functions.setdefault(f"{name}/{arguments}", z3.Function(name, *[z3.IntSort()] * arguments, sort))

    # Numbers and truths.

    def where(self, condition: Truth, then: Number, other: Number) -> Number:
        if isinstance(condition, bool):
            return then if condition else other
        if isinstance(then, Complex) or isinstance(other, Complex):
            x, y = as_complex(then), as_complex(other)
            return Complex(self.where(condition, x.real, y.real), self.where(condition, x.imag, y.imag))
        return z3.If(condition, then, other)

    def every(self, *facts: Truth) -> Truth:
        return z3.And(*facts)

    def some(self, *facts: Truth) -> Truth:
        return z3.Or(*facts)

    def fails(self, fact: Truth) -> Truth:
        return z3.Not(fact)

    def divide(self, x: Number, y: Number) -> Number:
        if isinstance(x, Complex) or isinstance(y, Complex):
            return inverse(as_complex(y), self) * x
        if self.kind != "integers":
            return x / y
        # Z3 divides to a remainder that is not negative.
        return z3.If(x >= 0, x / y, -((-x) / y))

    def truncated(self, x: Number) -> Number:
        return z3.If(x >= 0, z3.ToInt(x), -z3.ToInt(-x)) if self.kind == "reals" else x

    def unknown(self, name: str, *arguments: Number) -> Number:
        sort = z3.IntSort() if name in ("place", "iteration") else self.element
        return self.function(name, len(arguments), sort)(*arguments)

    def tells(self, name: str, *arguments: Number) -> Truth:
        return self.function(name, len(arguments), z3.BoolSort())(*arguments)

    def along(self, element: Number, dim: Number) -> Number:
        return self.function("along", 2, z3.IntSort())(element, dim)

    def choice(self, size: Number, holds: Callable[[Number], Truth]) -> tuple[Truth, Number]:
        candidate = z3.Int(f"choice{len(self.bound)}")
        self.bound.append(candidate)
        condition = holds(candidate)
        self.bound.pop()
        key, points = self.lifted("choice", size, condition, candidate)
        found = self.at_points(f"found {key}", points, z3.BoolSort())
        which = self.at_points(f"which {key}", points, z3.IntSort())
        if not self.hides(found):
            self.facts.append(z3.Implies(found, z3.And(which >= 0, which < size, holds(which))))
            other = self.point("other")
            self.facts += [z3.Implies(z3.And(c >= 0, c < size, holds(c)), found) for c in self.indices if c is not other]
        return found, which

    # Quotients.

    def digits(self, index: Number, block: Number) -> tuple[Number, Number]:
        index, block = z3.IntVal(index) if isinstance(index, int) else index, block
        block = z3.IntVal(block) if isinstance(block, int) else block
        if not self.hides(index, block):
            self.splits[index.get_id(), block.get_id()] = index, block
        return _quotient()(index, block), _remainder()(index, block)

    def of_digits(self, index: Any, block: Any) -> list[Any]:
        quotient, rest = _quotient()(index, block), _remainder()(index, block)
        facts = [index == quotient * block + rest, rest >= 0, rest < block]
        # A product grows with its factor: what is inside of block c has the quotient c.
        facts += [
            z3.Implies(z3.And(c * block <= index, index < c * block + block), quotient == c)
            for c in (*self.indices, *_times(index, block))
        ]
        facts += [
            z3.Implies(z3.And(index >= 0, index < size * block), z3.And(quotient >= 0, quotient < size)) for size in self.axes
        ]
        return [z3.Implies(block > 0, fact) for fact in facts]

    # Orders.

    def in_order(self, sizes: Sequence[Number], body: Callable[..., Number], place: Number) -> Number:
        if self.kind == "complex":
            raise NoMeaning("complex numbers have no order")
        numbers = [z3.Int(f"number{len(self.bound) + at}") for at in range(len(sizes))]
        self.bound += numbers
        term = body(*numbers)
        del self.bound[-len(numbers) :]
        term = z3.substitute(term, *((each, z3.Int(f"at {at}")) for at, each in enumerate(numbers[1:])))
        key, points = self.lifted("order", *sizes, term, numbers[0])
        value = self.at_points(f"order {key}", [*points, place], term.sort())
        self.orders[value.get_id()] = OrderTerm(value, sizes, body, place)
        return value

    def count(self, sizes: Sequence[Number], body: Callable[..., Number], bound: Any) -> Number:
        """How many numbers of the body are below a bound. Of numbers in order they are as many as of the numbers themselves."""
        size, *rest = sizes
        if rest:
            return self.fold(COUNT, size, lambda c: self.count(rest, lambda *at: body(c, *at), bound))
        number = z3.Int(f"number{len(self.bound)}")
        self.bound.append(number)
        found = self.orders.get(body(number).get_id())
        self.bound.pop()
        if found is not None and z3.eq(found.place, number) and len(found.sizes) == 1 and z3.eq(found.sizes[0], size):
            return self.count(found.sizes, found.body, bound)
        return self.fold(COUNT, size, lambda c: z3.If(body(c) < bound, z3.IntVal(1), z3.IntVal(0)))

    def of_orders(self) -> Iterator[Any]:
        """That arrays are equal in order, unless for some bound more elements of one are below it."""
        every = [each for each in self.orders.values() if not self.hides(each.value)]
        for x, y in combinations(every, 2):
            size, other = (z3.simplify(z3.Product(*each.sizes)) for each in (x, y))
            if z3.eq(x.place, y.place) and z3.eq(size, other):
                bound = self.point("bound", x.value.sort())
                counts = [self.count(each.sizes, each.body, bound) for each in (x, y)]
                within = z3.And(x.place >= 0, x.place < size)
                yield z3.Implies(within, z3.Or(x.value == y.value, counts[0] != counts[1]))

    # Folds.

    def fold(self, monoid: str, size: Number, body: Callable[[Number], Number]) -> Number:
        body = self.at_stage(body)
        if self.grown is not None and self.stage and z3.eq(size if z3.is_expr(size) else z3.IntVal(size), self.grown):
            return self.grown_fold(monoid, body)
        number = z3.Int(f"number{len(self.bound)}")
        self.bound.append(number)
        term = body(number)
        self.bound.pop()
        if isinstance(term, Complex) and monoid != "add":
            raise NoMeaning("any monoid is one of any elements")
        if isinstance(term, Complex):
            real = self.fold(monoid, size, lambda c: as_complex(body(c)).real)
            return Complex(real, self.fold(monoid, size, lambda c: as_complex(body(c)).imag))
        size = z3.IntVal(size) if isinstance(size, int) else z3.simplify(size)
        self.sizes[size.get_id()] = size
        key, points = self.lifted(monoid, size, term, number)
        sort = term.sort() if z3.is_expr(term) else self.element
        value = self.at_points(f"fold {key}", points, sort)
        if not self.hides(value):
            self.folds.setdefault(value.get_id(), FoldTerm(value, monoid, size, body, self.level))
        return value

    def at_stage(self, body: Callable[[Number], Number]) -> Callable[[Number], Number]:
        """The body as it is at this stage of an induction, whenever it is made."""
        stage = self.stage
        if self.grown is None:
            return body

        def made(number: Number) -> Number:
            now, self.stage = self.stage, stage
            try:
                return body(number)
            finally:
                self.stage = now

        return made

    def grown_fold(self, monoid: str, body: Callable[[Number], Number]) -> Number:
        """A fold over one element, or over one more than before."""
        if self.stage == "one":
            return body(z3.IntVal(0))
        stage, self.stage = self.stage, ""
        before = self.fold(monoid, self.grown, body)
        self.stage = stage
        last = body(self.grown)
        return self.combine(monoid, before, last)

    def combine(self, monoid: str, x: Number, y: Number) -> Number:
        if monoid in ("add", COUNT):
            return x + y
        if isinstance(x, Complex) or isinstance(y, Complex):
            raise NoMeaning("any monoid is one of any elements")
        return self.functions.setdefault(monoid, z3.Function(f"combine {monoid}", *[self.element] * 3))(x, y)

    def unit(self, monoid: str) -> Number:
        return z3.Const(f"unit {monoid}", self.element)

    def lifted(self, *parts: Any) -> tuple[str, list[Any]]:
        """A name for terms up to the points in them, and these points, in the order in which they occur."""
        *others, bound = parts
        found: dict[int, Any] = {}
        terms = [each for each in others if z3.is_expr(each)]
        for term in terms:
            self.collect(term, bound, found)
        places = [(point, z3.Const(f"at{number}", point.sort())) for number, point in enumerate(found.values())]
        places.append((bound, z3.Int("at number")))
        named = [z3.substitute(each, *places).sexpr() if z3.is_expr(each) else str(each) for each in others]
        text = " | ".join(named)
        return str(self.names.setdefault(text, len(self.names))), list(found.values())

    def collect(self, term: Any, bound: Any, found: dict[int, Any]) -> None:
        seen, left = set[int](), [term]
        while left:
            each = left.pop()
            if each.get_id() in seen:
                continue
            seen.add(each.get_id())
            is_point = each.get_id() in self.points or any(z3.eq(each, other) for other in self.bound)
            if is_point and not z3.eq(each, bound):
                found.setdefault(each.get_id(), each)
            left += reversed(each.children())

    def __post_init__(self) -> None:
        self.names: dict[str, int] = {}

    def hides(self, *terms: Any) -> bool:
        """Whether a term is inside of a fold, at no point of its own."""
        found: dict[int, Any] = {}
        for term in terms:
            seen, left = set[int](), [term]
            while left:
                each = left.pop()
                if each.get_id() not in seen:
                    seen.add(each.get_id())
                    name = each.decl().name() if z3.is_const(each) and z3.is_app(each) else ""
                    if name.startswith(("number", "choice")):
                        found[each.get_id()] = each
                    left += each.children()
        return bool(found)

    # Lemmas.

    def known(self) -> list[Any]:
        """All facts, with the lemmas at the points that occur."""
        facts, done, renumbered = list[Any](), set[tuple[int, ...]](), set[tuple[int, ...]]()
        facts += self.of_orders()
        # Orders bring up their counts, which is a round of its own.
        rounds = self.rounds + bool(self.orders)
        for level in range(1, rounds + 1):
            self.level = level
            every = [fold for fold in self.folds.values() if fold.level < self.level]
            for fold in every:
                if (key := (fold.value.get_id(),)) not in done and fold.level < rounds - 1:
                    done.add(key)
                    facts += self.of_fold(fold)
            for x, y in combinations(every, 2):
                key = (x.value.get_id(), y.value.get_id())
                if key not in done and self.may_be_equal(x, y):
                    done.add(key)
                    facts.append(self.congruent(x, y))
                if key not in renumbered and x.monoid == y.monoid == "add":
                    renumbered.add(key)
                    facts += [*self.renumbered(x, y), *self.renumbered(y, x)]
        facts += [fact for index, block in list(self.splits.values()) for fact in self.of_digits(index, block)]
        return [*self.facts, *facts]

    def at_points_of(self, term: Any, facts: list[Any]) -> list[Any]:
        """The facts of no other points than those in a term."""
        mine = self.points_in(term)
        return [fact for fact in facts if z3.is_expr(fact) and self.points_in(fact) <= mine]

    def points_in(self, term: Any) -> set[int]:
        found: dict[int, Any] = {}
        self.collect(term, z3.Int("none"), found)
        return {*found}

    def may_be_equal(self, x: FoldTerm, y: FoldTerm) -> bool:
        """Whether congruence is asked of two folds: not of one fold at two points, which the solver compares itself."""
        if x.monoid != y.monoid or x.value.sort() != y.value.sort() or z3.eq(x.value.decl(), y.value.decl()):
            return False
        return z3.eq(x.size, y.size) and abs(x.level - y.level) <= 1

    def congruent(self, x: FoldTerm, y: FoldTerm) -> Any:
        at = self.point("differs")
        return z3.Or(x.value == y.value, z3.And(at >= 0, at < x.size, x.body(at) != y.body(at)))

    def renumbered(self, x: FoldTerm, y: FoldTerm) -> Iterator[Any]:
        """A sum over windows and one over rows, of which each is the own row of the last window that begins at or before it."""

        def term(c: Any, i: Any) -> Any:
            return self.folds[x.body(c).get_id()].body(i)

        for axis in self.windows:
            count, stride = axis.size, axis.stride
            over_rows = not any(z3.eq(y.size, each) for each in (count, axis.width))
            if not (z3.eq(x.size, count) and over_rows and any(z3.eq(each, axis.width) for each in self.sizes.values())):
                continue
            window, column, row, own = (self.point(name) for name in ("window", "column", "row", "own"))
            inner = self.folds.get(x.body(window).get_id())
            if inner is None or not z3.eq(inner.size, axis.width):
                continue

            def number(row: Any, count: Any = count, stride: Any = stride, before: Any = axis.before) -> Any:
                quotient = self.digits(row + before, stride)[0]
                return z3.If(quotient < count - 1, quotient, count - 1)

            def grows(low: Any, high: Any, stride: Any = stride) -> Any:
                return z3.Implies(low < high, low * stride + stride <= high * stride)

            at = window * stride - axis.before + column
            there = row + axis.before - own * stride
            quotients = [self.digits(each + axis.before, stride)[0] for each in (at, row)]
            yield from (grows(*each) for q in quotients for each in ((q, count - 1), (count - 1, q), (q, z3.IntVal(0))))
            is_own = z3.And(own >= 0, own < count, there >= 0, there < axis.width, term(own, there) == y.body(row))
            no_row = z3.And(row >= 0, row < y.size, own == number(row), z3.Not(is_own))
            has_row = z3.And(at >= 0, at < y.size, number(at) == window)
            no_window = z3.And(_within(window, count), _within(column, axis.width), term(window, column) != 0, z3.Not(has_row))
            self.renumberings.append((x.value == y.value, no_row, no_window))

    def of_fold(self, fold: FoldTerm) -> list[Any]:
        return [*(self.of_sum(fold) if fold.monoid == "add" else ()), *self.regrouped(fold)]

    def of_sum(self, fold: FoldTerm) -> list[Any]:
        """What is known of a sum: that of one term, and that of sums."""
        term, facts = fold.body(self.point("term")), list[Any]()
        candidates = [z3.IntVal(0), *(_quotient()(*pair) for pair in self.splits.values())]
        for only in candidates:
            other = self.point("not zero")
            nonzero = z3.And(other >= 0, other < fold.size, other != only, fold.body(other) != 0)
            alone = z3.If(z3.And(only >= 0, only < fold.size), fold.value == fold.body(only), fold.value == 0)
            facts.append(z3.Or(alone, nonzero))
        if self.grown is not None and z3.is_app(term) and term.decl().kind() == z3.Z3_OP_ADD:
            count = len(term.children())
            parts = [self.fold("add", fold.size, _child(fold.body, number)) for number in range(count)]
            facts.append(fold.value == sum(parts[1:], parts[0]))
        return facts

    def regrouped(self, fold: FoldTerm) -> list[Any]:
        """A fold of whole blocks, or of the rows up to one whose digits occur."""
        facts = list[Any]()
        if fold.monoid == COUNT and z3.is_mul(fold.size):
            # The digits of a row are known from here on.
            fold.body(self.point("row"))
        for block in {block.get_id(): block for _, block in self.splits.values()}.values():
            for count in self.axes:
                if z3.eq(z3.simplify(count * block), fold.size):
                    whole = self.fold(fold.monoid, count, _blocks(self, fold, block))
                    facts.append(z3.Implies(z3.And(block > 0, count >= 0), fold.value == whole))
        for index, block in list(self.splits.values()):
            if not z3.eq(z3.simplify(index + 1), fold.size):
                continue
            quotient, rest = _quotient()(index, block), _remainder()(index, block)
            blocks = self.fold(fold.monoid, quotient, _blocks(self, fold, block))
            last = self.fold(fold.monoid, rest + 1, _row(fold, quotient, block))
            facts.append(z3.Implies(z3.And(block > 0, index >= 0), fold.value == self.combine(fold.monoid, blocks, last)))
        return facts


def _within(number: Any, size: Any) -> Any:
    return z3.And(number >= 0, number < size)


def _blocks(world: Terms, fold: FoldTerm, block: Any) -> Callable[[Number], Number]:
    return lambda c: world.fold(fold.monoid, block, _row(fold, c, block))


def _row(fold: FoldTerm, number: Any, block: Any) -> Callable[[Number], Number]:
    return lambda row: fold.body(number * block + row)


def _child(body: Callable[[Number], Number], number: int) -> Callable[[Number], Number]:
    return lambda c: body(c).children()[number]


def _times(index: Any, block: Any) -> list[Any]:
    """What a block is multiplied by in an index."""
    products = [each for each in index.children() if each.decl().kind() == z3.Z3_OP_MUL and len(each.children()) == 2]
    return [x for each in products for x, y in (each.children(), each.children()[::-1]) if z3.eq(y, block)]


def _quotient() -> Any:
    return z3.Function("quotient", z3.IntSort(), z3.IntSort(), z3.IntSort())


def _remainder() -> Any:
    return z3.Function("remainder", z3.IntSort(), z3.IntSort(), z3.IntSort())
