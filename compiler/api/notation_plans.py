"""Plans in the text: all `@` annotations are claimed first, together; then a `plan` block applies one tactic per line.

fn f(x: f32[B=512 @data, D=256], ...)      -->   Tile({"x": 0}, "data")
plan zero3 { tile w1.0 @data }             -->   tile("w1", 0, "data")
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller

from lark import Token

from ...dialects.errors import Error, Span
from ...dialects.grammar import Node, kinds, phrases, words
from ..notation.check import Program
from ..notation.diagnostics import Where, Wrong
from ..notation.terms import Function
from .notation_names import Address, addresses, known
from .plan import Plan
from .replay import tactics_of
from .tactics import Tile

Step = Callable[[Plan], Plan]


@dataclass(frozen=True, slots=True)
class Block:
    """A `plan` block: the function that it partitions, and its tactics, whose names are checked."""

    name: str
    function: str
    steps: tuple[Step, ...]


def annotated(program: Program, function: Function, plan: Plan) -> Plan:
    """The plan with its extents named and its annotations claimed."""
    named: set[str] = set()
    for array in function.arguments:
        for dim, name in enumerate(array.extents):
            if name is not None and name not in named:
                named.add(name)
                plan = plan.name(array.name, dim, name)
    claims = list(_claims(program, function))
    for axis in _ordered(program):
        tiles = {address: dim for address, dim, axes, _ in claims if axis in axes}
        if tiles:
            where = next(at for _, _, axes, at in claims if axis in axes)
            plan = placed(program, where, Tile(tiles, axis))(plan)
    return plan


def _claims(program: Program, function: Function) -> Iterator[tuple[str, int, Sequence[str], Span]]:
    """Address, dim, axes and location of every annotation."""
    for array, places in zip(function.arguments, function.places, strict=True):
        for dim, axes in enumerate(places):
            yield array.name, dim, axes, array.span
    for address in addresses(program, function):
        for dim, axes in enumerate(address.places):
            yield address.path, dim, axes, address.span
    for number, (array, places) in enumerate(zip(function.results, function.result_places, strict=True)):
        path = "result" if len(function.results) == 1 else f"result/{number}"
        for dim, axes in enumerate(places):
            yield path, dim, axes, array.span


def _ordered(program: Program) -> list[str]:
    """The axes, ordered so that major axes come before their minor ones."""
    left, found = list(program.mesh or ()), list[str]()
    while left:
        free = [axis for axis in left if not any((other, axis) in program.order for other in left)]
        found.append((free or left)[0])
        left.remove(found[-1])
    return found


def placed(program: Program, where: Where, step: Step) -> Step:
    """The tactic, with its errors located at its line in the text."""

    def tactic(plan: Plan) -> Plan:
        try:
            return step(plan)
        except Error as error:
            raise _moved(program, where, error) from error

    return tactic


def _moved(program: Program, where: Where, error: Error) -> Wrong:
    helps = [*error.helps] or ["see `docs/notation.md` for what a plan may hold"]
    moved = Wrong(error.title, location=program.text.location(where), label=error.label, notes=error.notes, helps=helps)
    moved.kind = "tactic"
    return moved


def block(program: Program, name: str, node: Node) -> Block:
    """The block of a plan. Raises `Wrong` for unknown names."""
    text, given = program.text, words(node)
    word = words(phrases(node)[0])[0]
    if program.mesh is None:
        text.fail("plan_mesh", word, name=name)
    if not program.functions:
        text.fail("plan_function", word, name=name)
    if given and given[0] not in program.functions:
        text.fail("plan_of", given[0], program.functions, name=given[0])
    function = program.functions[str(given[0]) if given else list(program.functions)[-1]]
    labels = dict.fromkeys(name for array in function.arguments for name in array.extents if name is not None)
    reader = _Reader(program, function, known(program, function), labels)
    steps = tuple(placed(program, each, step) for each in phrases(node)[1:] for step in reader.steps(each))
    return Block(name, function.name, steps)


@dataclass(slots=True)
class _Reader:
    """Reads the lines of one block."""

    program: Program
    function: Function
    values: Mapping[str, Address]
    labels: dict[str, None]

    def steps(self, node: Node) -> list[Step]:
        match node.data:
            case "tile":
                return self.tile(node)
            case "tile_range":
                return self.tile_range(node)
            case "replicate":
                paths = [self.value(word) for word in words(node)]
                return [methodcaller("replicate", paths, axis) for axis in self.axes(node, kinds(node, "places")[0])]
            case "label":
                (path, dim), label = self.spot(phrases(node)[0]), words(phrases(node)[1])[0]
                self.labels[str(label)] = None
                return [lambda plan: plan.name(path, _number(dim), str(label))]
            case "propagate":
                return [methodcaller("propagate", self.axis(words(node)[0]))]
            case _:
                return self.call(node)

    def call(self, node: Node) -> list[Step]:
        try:
            return list(tactics_of(" ".join(str(words(node)[0]).split())))
        except Error as error:
            raise _moved(self.program, node, error) from error

    def tile(self, node: Node) -> list[Step]:
        spots = [self.spot(each) for each in kinds(node, "spot")]
        axes = self.axes(node, kinds(node, "places")[0])
        if len(spots) == 1:
            return [methodcaller("tile", *spots[0], axis) for axis in axes]
        return [Tile({path: _number(dim) for path, dim in spots}, axis) for axis in axes]

    def tile_range(self, node: Node) -> list[Step]:
        label = words(phrases(node)[0])[0]
        if label not in self.labels:
            self.program.text.fail("plan_range", label, self.labels, name=label, function=self.function.name)
        return [_tile_range(str(label), self.axis(axis)) for axis in words(node)]

    def spot(self, node: Node) -> tuple[str, int | str]:
        """A value and one of its dims, by number or by the name of its extent."""
        text, given = self.program.text, words(node)
        path = self.value(given[0])
        if len(given) < 2:
            text.fail("plan_spot", node, name=given[0])
        dim, address = str(given[1]), self.values.get(str(given[0]))
        number = int(dim) if dim.lstrip("-").isdecimal() else None
        if address is None:
            return path, dim if number is None else number
        rank, extents = len(address.array.shape), address.array.extents
        if number is None and dim in extents:
            return path, extents.index(dim)
        if (number is None and dim not in self.labels) or (number is not None and not -rank <= number < rank):
            dims = [*map(str, range(rank)), *(name for name in extents if name)]
            text.fail("plan_dim", given[1], name=given[0], dim=dim, type=address.array.type, dims=", ".join(dims) or "none")
        return path, dim if number is None else number

    def value(self, word: Token) -> str:
        """The address of a value. The plan resolves patterns and numbered ops."""
        name = str(word)
        if any(mark in name for mark in "*?#") or name.startswith("result"):
            return name
        if name not in self.values:
            near = ", ".join(f"`{each}`" for each in list(self.values)[:8])
            self.program.text.fail("plan_value", word, self.values, name=name, function=self.function.name, known=near)
        return self.values[name].path

    def axes(self, node: Node, places: Node) -> list[str]:
        found = words(places)
        if not found:
            what = self.program.text.said(node)
            self.program.text.fail("plan_axes", node, what=what, axis=next(iter(self.program.mesh or ()), "data"))
        axes = [self.axis(each) for each in found]
        for number, axis in enumerate(axes):
            if axis in axes[:number]:
                self.program.text.fail("axis_used", found[number], value=words(phrases(node)[0])[0], axis=axis)
        return axes

    def axis(self, word: Token) -> str:
        mesh = self.program.mesh
        assert mesh is not None
        if word not in mesh:
            self.program.text.fail("axis_unknown", word, mesh, axis=word, mesh=mesh)
        return str(word)


def _number(dim: int | str) -> int:
    """A dim that must be a number, for tactics on several values."""
    if isinstance(dim, str):
        raise Error(f"`{dim}` names a range, but several values are tiled", helps=["give the dim of each by number: `x.0`"])
    return dim


def _tile_range(label: str, axis: str) -> Step:
    """Tile the dims of the range in every argument that has it."""

    def step(plan: Plan) -> Plan:
        root, of, program = plan.label(label), plan.source.classes.of, plan.source.program
        values = plan.source.addresses.arguments.items()
        held = [name for name, value in values if any(of(value, d) == root for d in range(len(program.shape(value))))]
        return plan.tile(held, label, axis)

    return step
