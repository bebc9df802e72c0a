"""Pairs of products, found from structure: a range that products with parameters make, and that other products sum over.

Between the two, every op must keep the range apart. A pair then costs one all_reduce forward, after the sum, and one backward
(Megatron, arXiv 1909.08053).

    h = x @ w1; y = gelu(h) @ w2      -->   a pair over dim 1 of w1, dim 0 of w2
    x = norm(x); h = x @ w1           -->   none over dim 0 of w1: the norm sums over the range

Pairs in program order do not share products. Those come last whose sums are larger than what they sum over, as those over the
width that layers without norms share.

Nothing is known of an op by its name: each candidate is propagated by the definitions through the forward pass, in a table that
is thrown away.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod

from ...dialects.ranges.algebra import Place
from ...rewrites.decide.price import Price
from ...rewrites.decide.propagate import Sweep
from ...rewrites.decide.table import BlockedOp, Claim, Weight, claim_of, next_factor
from ...rewrites.program.program import Node, ValueId
from ..inputs.lines import SourceLine, place_of
from ..inputs.message_language import step
from ..plan.addresses import argument
from ..plan.claims import Some, refined
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.listing import Listing, ListingForm
from ..views.view import Cell
from .products import Passes, is_product, multiplications, sums


@dataclass(frozen=True, slots=True)
class Pair:
    """A range that some products make and others sum over; or a candidate that is not a pair, with the reason."""

    columns: tuple[str, ...]
    """The parameters of the products that make the range, each with its dim: `params/w1.1`."""
    rows: tuple[str, ...]
    extent: int
    weights: tuple[tuple[ValueId, int], ...] = ()
    """The parameters of the pair, as values with their dims."""
    why_not: str = ""
    cure: str = ""
    source: SourceLine | None = None
    stop: BlockedOp | None = field(default=None, repr=False, compare=False)
    """The op that takes parts of the range, if each part would be on only a few devices."""
    is_uneven: bool = field(default=False, repr=False, compare=False)
    """Whether it is no pair because the range does not divide over the axis."""
    widens: bool = field(default=False, repr=False, compare=False)
    """Whether its sums are larger than what they sum over. Their products had better be columns, if they can."""

    def __str__(self) -> str:
        if self.why_not:
            return f"{', '.join(self.columns)} ({self.extent}): no pair, {self.why_not}"
        return f"{', '.join(self.columns)} -> {', '.join(self.rows)} ({self.extent})"

    __repr__ = __str__


def pairs(plan: State, axis: str, padded: bool = False) -> Listing[Pair]:
    """The pairs that a program's parameters form, in program order, and the candidates that are not pairs, with the reasons."""
    return plan.once(_Pairs(axis, padded))


def used_by(plan: State, axis: str) -> int | None:
    """The number of the tactic by which the first product of the forward pass that is on the axis uses it; None if none is."""
    tables = [table.nodes for part in plan.mesh.named(axis) if (table := plan.table.axes.get(part)) is not None]
    claims = (nodes[node.number] for node in Passes(plan).products() for nodes in tables)
    return next((claim.tactic for claim in claims if claim is not None), None)


def has_weights(plan: State, number: int) -> bool:
    """Whether a tactic has placed an argument that is no input."""
    weights = {*plan.source.program.arguments} - {*plan.source.inputs.values}
    claims = (plan.table.claim(value, axis) for value in weights for axis in plan.table.axes)
    return any(claim is not None and claim.tactic == number for claim in claims)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The arguments of `pairs`, as a function of the plan, so that a plan searches once."""

    axis: str
    padded: bool

    def __call__(self, plan: State) -> Listing[Pair]:
        columns = "columns", "rows", "extent", "why not", "at"
        search = Search(plan, self.axis, self.padded)
        found = [*search.found()]
        stops = {each.columns: each.stop for each in found}
        # A candidate may stop at a reshape that sub-axes cross, as where heads are put in groups: then these are searched.
        for sizes in dict.fromkeys(search.ways):
            mesh = plan.mesh.refine(**{self.axis: sizes})
            across = Search(refined(plan, mesh, len(plan.actions)), self.axis, self.padded)
            others = [replace(each, stop=stops.get(each.columns)) for each in across.found()]
            if across.price(across.products) > search.price(search.products):
                search, found = across, others
        return Listing(found, ListingForm("pairs", columns, _row, _cures))


def with_stops(plan: Some, found: Iterable[Pair]) -> Some:
    """Returns the plan with stops for the weights that a tactic of pairs leaves whole, because ops take parts of them."""
    stops = [each.stop for each in found if each.stop is not None]
    left = {
        (each.node, each.operand, each.axis): each
        for each in stops
        if each.weight is not None and each.axis in plan.table.axes and plan.table.claim(each.weight.value, each.axis) is None
    }
    return replace(plan, table=replace(plan.table, blocked={**plan.table.blocked, **left})) if left else plan


def _cures(found: Sequence[Pair]) -> list[str]:
    return [f"help: {each.cure}" for each in found if each.cure]


def _row(each: Pair) -> Sequence[Cell]:
    # An extent is a text: numbers of rows that are alike are added up.
    return ", ".join(each.columns), ", ".join(each.rows), str(each.extent), each.why_not, place_of(each.source)


class NoPair(Exception):
    """Raised for a candidate that is not a pair: the reason, the op, and its stop if it takes parts of `run` elements."""

    def __init__(
        self, why: str, node: Node | None = None, run: int = 0, stop: BlockedOp | None = None, is_uneven: bool = False
    ) -> None:
        super().__init__(why)
        self.why, self.node, self.run, self.stop, self.is_uneven = why, node, run, stop, is_uneven


@dataclass(slots=True)
class Reached:
    """What the propagation of one candidate reaches: ops and arguments, in the order in which they take the axis."""

    seeded: list[Place] = field(default_factory=list[Place])
    """The axes on which the candidate has been claimed."""
    nodes: list[Node] = field(default_factory=list[Node])
    arguments: list[ValueId] = field(default_factory=list[ValueId])


class Watched(Sweep):
    """A propagation through the forward pass. It reports each op that takes the axis to a judge, and records it."""

    def __init__(self, search: "Search", axis: Place, tactic: int, trial: Reached) -> None:
        super().__init__(search.table, axis, tactic, False, search.padded)
        self.trial, self.judge, self.is_forward = trial, search.judge, search.passes.is_forward

    def visit(self, node: Node) -> None:
        if self.is_forward(node):
            super().visit(node)

    def decided(self, node: Node) -> None:
        self.trial.nodes.append(node)
        self.judge(node)
        super().decided(node)

    def argument(self, value: ValueId) -> None:
        before = self.claims.values[value]
        super().argument(value)
        if self.claims.values[value] is not before:
            self.trial.arguments.append(value)


class Search:
    """The search for pairs on one axis. It propagates in a copy of the plan's table."""

    def __init__(self, plan: State, axis: str, padded: bool) -> None:
        self.plan, self.axis, self.padded, self.passes = plan, axis, padded, Passes(plan)
        self.program, self.of = plan.source.program, plan.source.classes.of
        self.parts = [part for part in plan.mesh.named(axis) if part.size > 1]
        self.table = plan.table.copy()
        for part in self.parts:
            self.table.touch(part)
        self.refused = set[int]()
        """The classes of dims that cannot form a pair."""
        self.later = list[tuple[Node, ValueId, int]]()
        """The pairs that widen, which others come before."""
        self.products = list[Node]()
        """The products of all pairs."""
        self.ways = list[tuple[int, ...]]()
        """The sizes of sub-axes that cross reshapes at which candidates stop."""

    def found(self) -> Iterator[Pair]:
        for node in self.passes.products() if self.parts else ():
            for position in (0, 1) if self.is_free(node) else ():
                yield from self.of_weight(node, position)
        for node, value, dim in self.later:
            pair = self.tried(value, dim, keep=True)[0] if self.is_free(node) else None
            if pair is not None:
                yield pair

    def is_free(self, node: Node) -> bool:
        return all(self.table.axes[part].nodes[node.number] is None for part in self.parts)

    def of_weight(self, node: Node, position: int) -> Iterator[Pair]:
        """Yields the pair that begins at a product with a parameter, after the candidates that are not pairs."""
        value = node.operands[position]
        if self.passes.parameter(value) in (None, *self.passes.inputs) or not self.is_free(node):
            return
        found = list[tuple[bool, Price, int]]()
        for dim, digits in enumerate(node.signature.operand_dims[position]):
            if len(digits) != 1 or not self.is_made(node, position, digits[0].at) or self.of(value, dim) in self.refused:
                continue
            pair, price = self.tried(value, dim)
            if pair is not None and pair.why_not:
                yield pair
            elif pair is not None:
                found.append((not pair.widens, price, dim))
        found.sort(reverse=True)
        for narrows, _, dim in found:
            if not narrows:
                self.later.append((node, value, dim))
            elif self.is_free(node) and (pair := self.tried(value, dim, keep=True)[0]) is not None:
                yield pair

    def is_made(self, node: Node, position: int, index: int) -> bool:
        """Whether a product makes the range of an index: it is in this operand and the result, but not in the other operand."""
        signature = node.signature
        return index not in signature.operand_at[1 - position] and index in signature.result_at[0]

    def tried(self, value: ValueId, dim: int, keep: bool = False) -> tuple[Pair | None, Price]:
        """The pair over a dim, or why it is none, and the price of its products; None if the dim is too short."""
        trial, before = Reached(), (dict(self.table.blocked), dict(self.table.conflicts))
        try:
            pair = self.judged(trial, value, dim) if self.propagated(trial, value, dim) else None
        except NoPair as no:
            pair = self.refusal(no, value, dim)
        if not keep or pair is None or pair.why_not:
            self.undo(trial, value)
            self.table.blocked, self.table.conflicts = before
        else:
            self.products += filter(is_product, trial.nodes)
        return pair, self.price(filter(is_product, trial.nodes))

    def price(self, products: Iterable[Node]) -> Price:
        """The price of products on one device."""
        return Price.of(self.program.mesh, (), ((multiplications(node), 1) for node in products))

    def propagated(self, trial: Reached, value: ValueId, dim: int) -> bool:
        """Tiles the dim on the axis, and propagates through the forward pass. False if the dim is too short. Raises NoPair."""
        number = len(self.plan.actions)
        for part in self.parts:
            pads = part.size if self.padded else 0
            values = self.table.axes[part].values
            if values[value] is not None or (factor := next_factor(self.table, value, dim, part, pads)) is None:
                if values[value] is None and self.program.shape(value)[dim] > part.size:
                    raise NoPair(f"it does not divide over `{part}` ({part.amount})", is_uneven=True)
                return False
            values[value] = Claim(dim, factor, number)
            trial.seeded.append(part)
            Watched(self, part, number, trial).run([value])
        return True

    def refusal(self, no: NoPair, value: ValueId, dim: int) -> Pair:
        """The entry of the listing for a candidate that is not a pair."""
        self.refused.add(self.of(value, dim))
        source = None if no.node is None else line_of(self.plan, no.node.results[0], no.node)
        name, cure, stop = self.named(value, dim), "", None
        # A cure is for one weight, not for one that the program puts together from several.
        run = no.run if len(self.passes.parameters(value)) == 1 else 0
        if run and no.stop is not None and (weight := self.passes.on_parameter(value, dim)) is not None:
            stop = replace(no.stop, weight=Weight(*weight, run))
        size = prod(part.size for part in self.parts)
        if run and run % size == 0:
            weight, at = name.rsplit(".", 1)
            turn = step(f'Tile({{"{weight}": {at}}}, "{self.axis}", block={run // size})')
            cure = f"give the parts of {weight} a dim of their own, or tile them in turn: {turn}"
        return Pair((name,), (), self.program.shape(value)[dim], (), no.why, cure, source, stop, no.is_uneven)

    def undo(self, trial: Reached, value: ValueId) -> None:
        """Removes all claims of a trial. It has claimed only what was free."""
        for part in self.parts:
            nodes, values = self.table.axes[part].nodes, self.table.axes[part].values
            for node in trial.nodes:
                nodes[node.number] = None
            for each in trial.arguments:
                values[each] = None
        for part in trial.seeded:
            self.table.axes[part].values[value] = None

    # --- judgement -------------------------------------------------------------------------------------------------

    def judge(self, node: Node) -> None:
        """Raises NoPair if the op folds the range, except in a product with a parameter."""
        for part in self.parts:
            claim = self.table.axes[part].nodes[node.number]
            if claim is None or node.signature.indices[claim.at].folds is None:
                continue
            if not is_product(node) or not any(argument(self.program, value) is not None for value in node.operands):
                raise NoPair(f"`{node.op_name}` folds the range", node)

    def judged(self, trial: Reached, value: ValueId, dim: int) -> Pair | None:
        """The pair that a propagated candidate forms. Raises NoPair if it forms none."""
        met = self.passes.inputs.intersection(trial.arguments)
        if met and not any(self.is_batched(node) for node in filter(is_product, trial.nodes)):
            raise NoPair(f"input `{self.plan.source.addresses.names[min(met)]}` has the range")
        for node in trial.nodes:
            self.kept_apart(node)
        columns, rows = dict[str, tuple[ValueId, int]](), dict[str, tuple[ValueId, int]]()
        made, read = list[ValueId](), set[ValueId]()
        for node in filter(is_product, trial.nodes):
            for name, weight, is_row in self.weights(node):
                (rows if is_row else columns)[name] = weight
                if is_row:
                    made += node.results
                    read |= {each for each in node.operands if self.passes.parameter(each) is None}
        if not rows or not columns:
            raise NoPair("no product with a parameter sums over it")
        weights = tuple(dict.fromkeys((*columns.values(), *rows.values())))
        larger = sum(prod(self.program.shape(each)) for each in made) > sum(prod(self.program.shape(each)) for each in read)
        return Pair(tuple(columns), tuple(rows), self.program.shape(value)[dim], weights, widens=larger)

    def is_batched(self, node: Node) -> bool:
        """Whether a product of computed values has one product for each element of the range, as attention has for each head.

        Then the range is no width of a model, and an input that has it, as a cache has heads, may be tiled.
        """
        claims = (self.table.axes[part].nodes[node.number] for part in self.parts)
        ends = *node.signature.operand_at, node.signature.result_at[0]
        is_kept = any(claim is not None and all(claim.at in at for at in ends) for claim in claims)
        return is_kept and all(self.passes.parameter(value) in (None, *self.passes.inputs) for value in node.operands)

    def kept_apart(self, node: Node) -> None:
        """Raises NoPair if an op of the forward pass reads the result of this one whole, or in other blocks."""
        for part in self.parts:
            table = self.table.axes[part]
            for value in node.results:
                have = claim_of(self.program, table, value)
                if have is not None:
                    self.read_in_place(value, have, part)

    def read_in_place(self, value: ValueId, have: Claim, part: Place) -> None:
        for use, position in self.program.reads(value):
            claim = self.table.axes[part].nodes[use.number]
            if not self.passes.is_forward(use):
                continue
            if claim is None:
                stops = (self.table.blocked.get((use.number, at, part)) for at in range(len(use.operands)))
                stop = next((stop for stop in stops if stop is not None), None)
                self.ways += [ways] if stop is not None and (ways := self.table.ways_across(stop)) else []
                why = "two of its dims ask for the axis" if stop is None else stop.reason
                raise NoPair(f"`{use.op_name}` needs it whole: {why}", use)
            at = use.signature.operand_at[position].get(claim.at)
            if at is None or at.dim != have.at or at.outward(claim.factor) is not have.factor:
                why, run = "needs other blocks of it on a device", self.run(value, have.at) if use.signature.shifts else 0
                extent, number = self.program.shape(value)[have.at], len(self.plan.actions)
                stop = BlockedOp(use.number, position, part, have.at, extent, have.factor, f"the op {why}", number)
                raise NoPair(f"`{use.op_name}` {why}", use, run, stop if run else None)

    def run(self, value: ValueId, dim: int) -> int:
        """The number of elements in the parts that ops take of a dim: the greatest common divisor of all parts."""
        uses = (use for use in self.program.readers(value) if use.signature.shifts)
        parts = [self.program.shape(part)[dim] for use in uses for part in use.results]
        return gcd(*parts, self.program.shape(value)[dim])

    def weights(self, node: Node) -> Iterator[tuple[str, tuple[ValueId, int], bool]]:
        """Yields the parameters of a product that have the range: name, value with dim, whether the product sums over it."""
        claims = [self.table.axes[part].nodes[node.number] for part in self.parts]
        table, claim = self.table.axes[self.parts[0]], claims[0]
        # Sub-axes may be on several indices of a product, or on some parts of it: then it follows the others.
        if claim is None or any(each is None or each.at != claim.at for each in claims):
            return
        for value, at in zip(node.operands, node.signature.operand_at, strict=True):
            for each in self.passes.parameters(value) if claim.at in at else ():
                own = table.values[each]
                # A loop may contain all of the forward pass, and begins outside of it.
                outside = self.program.source(value, lambda node: node.is_border and node.passes_on)
                weight = (outside, at[claim.at].dim) if own is None else (each, own.at)
                yield self.named(*weight), weight, sums(node, claim.at)

    def named(self, value: ValueId, dim: int) -> str:
        """The name of a dim. If the value is a parameter that is only moved, it is the parameter's."""
        value, dim = self.passes.on_parameter(value, dim) or (value, dim)
        return f"{self.plan.source.addresses.names[value]}.{dim}"
