"""The program as flat tables, which propagation and decisions read.

The xDSL module remains the only source; a `Program` is a view of it, built once and shared by all plans. Each operation
becomes a `Node` (its bound definition, its operand and result value numbers). An op with regions, a loop or a
`cond`, becomes the nodes of its regions between *borders*: nodes whose definitions say how a dim crosses (`enter`, `trip`,
`carry`, `leave`, `collect`, `join`) and which know in which region each of their operands is read.

    %y:2 = lax.scan %c, %x {...}   -->   carry, trip, body nodes ..., leave, collect
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from operator import attrgetter
from typing import NamedTuple, NewType, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ...dialects.array import ArrayType
from ...dialects.definitions.requirement_terms import Scan
from ...dialects.definitions.tilings import Instance, SubIndices
from ...dialects.lax import RegionOp
from ...dialects.mesh import Mesh
from ...dialects.params import NO_PARAMS, ParamsAttr
from ...dialects.ranges.affine_read import AffineRead
from ...dialects.ranges.algebra import Place
from ...dialects.ranges.factor import Factor, crossing
from .breadth_first import reached

ValueId = NewType("ValueId", int)
"""The number of a value, by which the tables of a program are read."""

NodeId = NewType("NodeId", int)
"""The number of a node, in program order."""

NO_VALUE = ValueId(-1)
NO_NODE = NodeId(-1)


class Position(NamedTuple):
    """Where an index is in a value: its dim, the distance `minor` between its neighbouring values, and its window, if any."""

    dim: int
    minor: int
    reach: AffineRead | None = None

    def outward(self, factor: Factor, beside: Sequence[Factor] = ()) -> Factor:
        """The factor of the dim for a given factor of the index, with others `beside` it: what a device reads, or holds."""
        read = self.window(factor, beside)
        assert read is not None, "an index is placed only if its windows are the same size everywhere"
        return read

    def window(self, factor: Factor, beside: Sequence[Factor] = ()) -> Factor | None:
        """The same for an index that is not placed yet; None if windows differ between devices."""
        if self.reach is None:
            return factor.outward(self.minor)
        return crossing(beside, self.reach.extent, self.reach.outward, factor)

    def claim(self, factor: Factor, padded: bool, last: bool, beside: Sequence[Factor] = ()) -> Factor | None:
        """The factor to claim on the dim for a given factor of the index; None if it does not divide."""
        if (reach := self.reach) is None:
            return factor.outward(self.minor)
        return crossing(beside, reach.extent, partial(reach.claim, padded=padded, last=last), factor)


class Signature:
    """A bound definition with tables: from an index to its position in each value, and from a dim to its indices."""

    def __init__(self, instance: Instance, ins: Sequence[ArrayType], outs: Sequence[ArrayType]) -> None:
        self.instance, self.definition, self.indices = instance, instance.definition, instance.indices
        self.shapes = tuple(tuple(type.shape for type in types) for types in (ins, outs))
        self.operand_dims, self.result_dims = instance.operands, instance.results
        self.dims = [digits for dims in (*instance.operands, *instance.results) for digits in dims]
        self.rivals: dict[int, set[int]] = {}
        """For an index that reads a dim through a window, the other indices of that dim: only one of them can be placed."""
        for digits in (digits for digits in self.dims if digits and digits[0].reach):
            for digit in digits:
                self.rivals.setdefault(digit.at, set()).update(each.at for each in digits if each is not digit)
        self.operand_at, self.result_at = (tuple(map(_at, side)) for side in (instance.operands, instance.results))
        windowed = (any(digits and digits[0].reach for digits in dims) for dims in self.operand_dims if any(dims))
        self.shifts = instance.definition.moves and bool(self.rivals) and all(windowed)
        """Whether the op only shifts elements, by windows. That costs nothing, so its result is computed where it is read."""
        self.placed: dict[object, object] = {}
        self.misfits: dict[object, str | None] = {}
        """Why factors do not fit an index together, for those that were tried; None if they do."""
        self.own: dict[Place, int] = {}
        """For an op with its own mesh axes: maps each axis to the index that is always placed on it."""
        self.once = False
        """Whether only the first device runs the op. Its own axes are then all axes of the mesh."""

    def dims_of(self, position: int) -> SubIndices:
        """The indices in each dim of an operand or, at -1, -2, ..., of a result."""
        return self.operand_dims[position] if position >= 0 else self.result_dims[-1 - position]

    def places_of(self, position: int) -> dict[int, Position]:
        """Where each index is in an operand or, at -1, -2, ..., in a result."""
        return self.operand_at[position] if position >= 0 else self.result_at[-1 - position]

    def is_minor(self, index: int) -> bool:
        """Whether the index is minor to another one in a dim, so that padding it would leave holes in the dim."""
        return any(digit.at == index and digit.extent is not None for digits in self.dims for digit in digits)

    def follows_windows(self, index: int, window: Factor) -> bool:
        """Whether the index may be placed in windows: it is major in its dims, and a fold over it can count each element once.

        With overlapping windows, a fold also needs blocks that are not the whole range, because it computes on all elements.
        """
        info = self.indices[index]
        overlaps = not info.parts(Scan) and window.stride > 0 and window.span != info.extent
        return not self.is_minor(index) and (info.folds is None or window.is_tiling or overlaps)

    def are_beside(self, index: int, other: int) -> bool:
        """Whether both are indices of one dim. If one of them comes in windows, the other one is not placed."""
        return any({index, other} <= {digit.at for digit in digits} for digits in self.dims)

    def reaches(self, index: int) -> list[AffineRead]:
        """The windows through which the index reads dims."""
        return [digit.reach for digits in self.dims for digit in digits if digit.at == index and digit.reach is not None]


def _is_by_identity(key: object) -> bool:
    return isinstance(cast("tuple[object, ...]", key)[1], int)


def _at(dims: SubIndices) -> dict[int, Position]:
    return {digit.at: Position(dim, digit.minor, digit.reach) for dim, digits in enumerate(dims) for digit in digits}


Signatures = dict[object, Signature]


@dataclass(slots=True, eq=False)
class Node:
    """One operation, or one border of a region, as propagation sees it."""

    number: NodeId
    op_name: str
    """The name of the op without that of its dialect, such as `dot_general`; of a border, `carry` and so on."""
    signature: Signature
    operands: tuple[ValueId, ...]
    results: tuple[ValueId, ...]
    op: Operation
    region: int
    reads: tuple[int, ...] = ()
    """Borders only: the region in which each operand is read. Other nodes read and make values in their own region."""

    @property
    def params(self) -> ParamsAttr:
        """The parameters of the op; none for an op of another dialect."""
        return cast(ParamsAttr, self.op.properties.get("params", NO_PARAMS))

    def positions(self, values: Container[ValueId]) -> frozenset[int]:
        """Which of the operands are among these values."""
        return frozenset([at for at, value in enumerate(self.operands) if value in values])

    @property
    def main(self) -> ValueId:
        """The first value that the node makes, or else reads; NO_VALUE if there is none."""
        return self.results[0] if self.results else self.operands[0] if self.operands else NO_VALUE

    @property
    def is_border(self) -> bool:
        """Whether the node is a border, where values cross into a region or out of it."""
        return bool(self.reads)

    @property
    def is_free(self) -> bool:
        """Whether claims alone decide where the op runs: it has a result, no axes of its own, and is not run on one device.

        A border without results reads what all devices need: a predicate, or the number of a branch.
        """
        return bool(self.results) and not (self.signature.own or self.signature.once)

    @property
    def passes_on(self) -> bool:
        """Whether the op only moves or casts one value, or lets it enter a region."""
        is_move = self.op_name == "enter" if self.is_border else self.signature.instance.moves
        return is_move and len(self.results) == len(self.operands) == 1

    @property
    def ends(self) -> Iterator[tuple[ValueId, Mapping[int, Position]]]:
        """Each operand and each result, with where the op's indices are in it."""
        return zip((*self.operands, *self.results), (*self.signature.operand_at, *self.signature.result_at), strict=True)

    def end(self, position: int) -> ValueId:
        """The operand at `position`, or result number `-1 - position` if it is negative."""
        return self.operands[position] if position >= 0 else self.results[-1 - position]


@dataclass(slots=True)
class Region:
    """A loop body or a branch, and the region around it. Region 0 is the program itself, which runs once.

    `trips` is how often one run of the enclosing region runs it, and 1 if that is unknown. `mark` then names the loop or the
    branch, `while#0` or `cond#2:1`; it is empty if the trip count is known. Decisions assume that it runs `likely` times.
    """

    parent: int
    trips: int
    likely: int
    mark: str = ""


@dataclass(slots=True)
class Control:
    """An op with regions, given by its borders.

    * `enters`: per operand the border that reads it.
    * `yields`: per region, per value that it yields, the border that reads it and as which operand.
    * `leaves`: per result the border with the layout in which the op returns it, and the border that makes the value.
    """

    op: RegionOp
    regions: tuple[int, ...]
    number: NodeId
    """The number of nodes before the op."""
    enters: list[Node] = field(default_factory=list[Node])
    yields: list[list[tuple[Node, int]]] = field(default_factory=list[list[tuple[Node, int]]])
    leaves: list[tuple[Node, Node]] = field(default_factory=list[tuple[Node, Node]])


def number_of(entry: list[Node] | Control) -> NodeId:
    """The number of an op that a program lists, by its nodes or as an op with regions."""
    return entry.number if isinstance(entry, Control) else entry[0].number


@dataclass(slots=True)
class Program:
    """Flat tables of one module; values and nodes are numbers."""

    module: ModuleOp
    mesh: Mesh
    """The mesh on which its plans begin. Its chip and its slow links say what a step costs."""
    nodes: list[Node] = field(default_factory=list[Node])
    regions: list[Region] = field(default_factory=list[Region])
    controls: list[list[Control]] = field(default_factory=list[list[Control]])
    """For each region, the ops with regions that it contains, in program order."""
    types: list[ArrayType] = field(default_factory=list[ArrayType])
    producer: list[NodeId] = field(default_factory=list[NodeId])
    region: list[int] = field(default_factory=list[int])
    """For each value, the region in which it is made."""
    uses: list[list[tuple[NodeId, int]]] = field(default_factory=list[list[tuple[NodeId, int]]])
    zero: list[bool] = field(default_factory=list[bool])
    parameter: list[bool] = field(default_factory=list[bool])
    numbers: dict[SSAValue, ValueId] = field(default_factory=dict[SSAValue, ValueId])
    arguments: tuple[ValueId, ...] = ()
    returned: tuple[ValueId, ...] = ()
    argument_names: tuple[str, ...] = ()
    result_names: tuple[str, ...] = ()
    signatures: Signatures = field(default_factory=dict[object, Signature])
    """Bound definitions by op, parameters and types, and by the identities of these while the program keeps them alive."""
    shifting: set[NodeId] = field(default_factory=set[NodeId])
    """The nodes that only shift elements, by windows."""
    mapped: set[Place] = field(default_factory=set[Place])
    """The axes on which a `shard_map` of the program runs. They cannot be split into sub-axes."""
    part: list[ValueId] = field(default_factory=list[ValueId])
    """Per value the part of the program that it is in, once `parts` has found them."""
    listed: list[list[list[Node] | Control]] = field(default_factory=list[list[list[Node] | Control]])
    """What `entries` has listed."""
    constant: dict[NodeId, None] = field(default_factory=dict[NodeId, None])
    """What `constants` has found."""

    def __repr__(self) -> str:
        return f"Program({len(self.nodes):,} ops, {len(self.types):,} values)"

    @property
    def has_regions(self) -> bool:
        """Whether the program has loops or branches."""
        return len(self.regions) > 1

    def bound(self) -> Signatures:
        """The bound definitions that another program on the same mesh can share."""
        return {key: found for key, found in self.signatures.items() if not _is_by_identity(key)}

    def together(self, node: Node) -> list[Node]:
        """The nodes of a node's op: one node, unless the op's values are placed apart from each other."""
        if not node.signature.definition.apart:
            return [node]
        nodes = dict.fromkeys(self.nodes[self.producer[self.numbers[result]]] for result in node.op.results)
        return list(nodes) or [node]

    def entries(self) -> list[list[list[Node] | Control]]:
        """For each region, its ops in program order: the nodes of an op, or an op that contains regions. Listed once."""
        if not self.listed:
            self.listed = [[] for _ in self.regions]
            for node in self.nodes:
                if not node.reads and node is (nodes := self.together(node))[0]:
                    self.listed[node.region].append(nodes)
            for entries, controls in zip(self.listed, self.controls, strict=True):
                if controls:
                    entries += controls
                    entries.sort(key=number_of)
        return self.listed

    def constants(self) -> Collection[NodeId]:
        """The ops that depend on no argument, in program order. Found once."""
        if not self.constant:
            depends = set(self.arguments)
            for node in self.nodes:
                if node.is_border or node.signature.once or not depends.isdisjoint(node.operands):
                    depends.update(node.results)
                else:
                    self.constant[node.number] = None
        return self.constant.keys()

    @property
    def values(self) -> Sequence[ValueId]:
        """The numbers of all values."""
        return cast("Sequence[ValueId]", range(len(self.types)))

    @property
    def end(self) -> NodeId:
        """The number after those of all nodes, where the program returns its results."""
        return NodeId(len(self.nodes))

    @property
    def main(self) -> func.FuncOp:
        """The program's function."""
        return cast(func.FuncOp, next(iter(self.module.body.block.ops)))

    def shape(self, value: ValueId) -> tuple[int, ...]:
        """The global shape of a value."""
        return self.types[value].shape

    def is_read(self, value: ValueId) -> bool:
        """Whether an op reads the value, or the program returns it."""
        return bool(self.uses[value]) or value in self.returned

    def zeros(self, node: Node) -> frozenset[int]:
        """The positions of a node's operands that are known to be zero."""
        return frozenset([at for at, value in enumerate(node.operands) if self.zero[value]])

    def use_region(self, number: NodeId, position: int) -> int:
        """The region in which a use reads its value. A region's inputs are read before it, results after all nodes."""
        if number == len(self.nodes):
            return 0
        node = self.nodes[number]
        return node.reads[position] if node.reads else node.region

    def from_outside(self, number: NodeId, position: int) -> bool:
        """Whether a use reads a value of another region. After a loop, that is the loop's carry."""
        if number == len(self.nodes):
            return False
        node = self.nodes[number]
        return node.is_border and node.reads[position] != self.region[node.operands[position]]

    def made_by(self, value: ValueId) -> Node:
        """The op that makes a value, which is no argument."""
        return self.nodes[self.producer[value]]

    def maker(self, value: ValueId) -> Node | None:
        """The op that makes a value; None for an argument."""
        number = self.producer[value]
        return self.nodes[number] if number >= 0 else None

    def made_of(self, value: ValueId) -> tuple[ValueId, ...]:
        """The operands of the op that makes a value; empty for an argument."""
        node = self.maker(value)
        return () if node is None else node.operands

    def reads(self, value: ValueId) -> Iterator[tuple[Node, int]]:
        """The uses of a value by ops: each op, with the position of the value among its operands."""
        return ((self.nodes[number], position) for number, position in self.uses[value])

    def readers(self, value: ValueId) -> Iterator[Node]:
        """The ops that read a value, once for each operand that it is."""
        return (node for node, _ in self.reads(value))

    def upstream(self, values: Iterable[ValueId], through: Callable[[Node], bool]) -> Iterator[Node]:
        """The ops that the values are computed by, each once, nearest first.

        The walk follows only ops for which `through` holds.
        """
        makers = (node for value in values if (node := self.maker(value)) is not None and through(node))

        def before(node: Node) -> Iterator[Node]:
            return (made for value in node.operands if (made := self.maker(value)) is not None and through(made))

        return reached(makers, before)

    def downstream(self, values: Iterable[ValueId], through: Callable[[Node], bool]) -> Iterator[ValueId]:
        """The values, and all that is computed from them by ops for which `through` holds, each once, nearest first."""
        return reached(values, lambda value: (made for node in self.readers(value) if through(node) for made in node.results))

    def source(self, value: ValueId, through: Callable[[Node], bool] = attrgetter("passes_on")) -> ValueId:
        """The original of a value: walks back through ops of one operand that only move it, cast it, or let it enter a region.

        %t = transpose %w; loop { enter %t }   -->   %w
        """
        while (node := self.maker(value)) is not None and through(node):
            (value,) = node.operands
        return value

    def around(self, region: int) -> Iterator[Region]:
        """Yields a region and the regions around it, except for the program itself."""
        return map(self.regions.__getitem__, self.outward(region))

    def outward(self, region: int) -> Iterator[int]:
        """Yields the numbers of a region and of the regions around it, except for the program itself."""
        while region:
            yield region
            region = self.regions[region].parent

    def trips(self, region: int) -> int:
        """How often a region runs in one call; an unknown trip count counts as 1."""
        return prod(each.trips for each in self.around(region)) if region else 1

    def likely_trips(self, region: int) -> int:
        """How often a region is assumed to run in one call. It decides between collectives inside and outside of a loop."""
        return prod(each.likely for each in self.around(region)) if region else 1

    def where(self, region: int) -> str:
        """The marks of the loops and branches on which a region's number of runs depends: `while#0/cond#1:0`, or empty."""
        if not region:
            return ""
        return "/".join(reversed([each.mark for each in self.around(region) if each.mark]))
