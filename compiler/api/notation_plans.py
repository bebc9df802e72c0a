"""Plans in the text of a program: first all `@` annotations are claimed together, then a `plan` block applies a tactic a line.

fn f(x: f32[B=512 @data, D=256], ...)      -->   Tile({"x": 0}, "data")
plan zero3 { tile w1.0 @data }             -->   tile("w1", 0, "data")
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from ...dialects.grammar import SyntaxNode, Word, phrases, words
from ...dialects.ground.errors import Error, Location, Span
from ...dialects.mesh import Mesh
from ...dialects.ranges.text import check_array_text
from ..notation.addresses import addresses, addresses_by_name
from ..notation.check import CheckedFile
from ..notation.diagnostics import Text, span
from ..notation.parse import tree
from ..notation.tactic_statements import Known, Statements, at_statement
from ..notation.terms import CheckedFunction
from .plan import Plan
from .tactic_text import Located, tactic_of
from .tactics import Tile


@dataclass(frozen=True, slots=True)
class Line:
    """A statement of a `plan` block: its text, place and tactics, and the record of what they did when the file was saved."""

    said: str
    location: Location
    steps: tuple[Located, ...]
    record: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A `plan` block: the function that it partitions, its lines, and the layouts that were saved with it.

    Without a function of the file, it is a plan of a JAX function; `function` is then what the block says, or None.
    """

    name: str
    function: str | None
    lines: tuple[Line, ...]
    layouts: tuple[str, ...] = ()
    mesh: Mesh | None = None
    """The mesh of the file, whose axes the layouts name."""

    @property
    def steps(self) -> tuple[Located, ...]:
        return tuple(step for line in self.lines for step in line.steps)


def annotated(program: CheckedFile, function: CheckedFunction, plan: Plan) -> Plan:
    """Names the extents of a function in its plan, and claims its annotations."""
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
            tile = Tile(tiles, axis)
            plan = Located(str(tile), tile, partial(at_statement, program.text, where))(plan)
    return plan


def _claims(program: CheckedFile, function: CheckedFunction) -> Iterator[tuple[str, int, Sequence[str], Span]]:
    """Yields the address, dim, axes and location of each annotation."""
    results = ["result"] if len(function.results) == 1 else [f"result/{number}" for number in range(len(function.results))]
    arrays = chain(
        ((each.name, each, each.span) for each in function.arguments),
        ((each.path, each.array, each.span) for each in addresses(program, function)),
        ((path, each, each.span) for path, each in zip(results, function.results, strict=True)),
    )
    return ((path, dim, axes, at) for path, array, at in arrays for dim, axes in enumerate(array.places))


def _ordered(program: CheckedFile) -> list[str]:
    """The mesh axes, ordered so that an axis comes before those that are minor to it."""
    left, found = list(program.mesh or ()), list[str]()
    while left:
        free = [axis for axis in left if not any((other, axis) in program.order for other in left)]
        found.append((free or left)[0])
        left.remove(found[-1])
    return found


def steps_in(text: Text) -> tuple[Located, ...]:
    """Parses the body of a `plan` block, without its braces, as tactics for a plan of a JAX function."""
    lines, _ = _read(CheckedFile(text, None, {}, {}, {}), phrases(tree(text, "body")), None)
    return tuple(step for line in lines for step in line.steps)


def plan_block(program: CheckedFile, name: str, node: SyntaxNode) -> Block:
    """Reads the block of a plan.

    Raises `Wrong` for unknown names, except for those of a JAX function's values: its plan checks them.
    """
    text, given = program.text, words(node)
    word = words(phrases(node)[0])[0]
    if program.mesh is None:
        text.fail("plan_mesh", word, name=name)
    if not program.functions:
        return Block(name, str(given[0]) if given else None, *_read(program, phrases(node)[1:], None), program.mesh)
    if given and given[0].text not in program.functions:
        text.fail("plan_of", given[0], program.functions, name=given[0])
    function = program.functions[str(given[0]) if given else list(program.functions)[-1]]
    labels = dict.fromkeys(name for array in function.arguments for name in array.extents if name is not None)
    names = Known(function.name, addresses_by_name(program, function), labels)
    return Block(name, function.name, *_read(program, phrases(node)[1:], names), program.mesh)


def _read(program: CheckedFile, body: Sequence[SyntaxNode], names: Known | None) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Reads the lines of a block, and the layouts that follow them."""
    text, lines, layouts = program.text, list[Line](), list[str]()
    for each in body:
        match each.data:
            case "record" if lines:
                lines[-1] = replace(lines[-1], record=words(each)[0].text.removeprefix("=>").strip())
            case "record":
                text.fail("record_first", each)
            case "layouts":
                layouts += _rows(text, words(each)[0])
            case _:
                lines.append(Line(text.said(each), text.location(each), steps_of(program, each, names)))
    if layouts or any(line.record is not None for line in lines):
        lines = [replace(line, steps=tuple(replace(step, is_saved=True) for step in line.steps)) for line in lines]
    return tuple(lines), tuple(layouts)


def _rows(text: Text, word: Word) -> Iterator[str]:
    """Yields the rows of the layouts, one a line: `params/w1 x 4: f32[64, model*16]`. Raises `Wrong` for a malformed row."""
    for number, line in enumerate(word.text.split("\n")):
        said = line.strip()
        row = said.removeprefix("layout").strip()
        name, _, layout = row.rpartition(": ")
        if not name.strip():
            text.fail("layout_row", _place(word, number, line))
        try:
            check_array_text(layout)
        except Error:
            at = _place(word, number, line)
            text.fail("layout_text", replace(at, column=at.column + said.rindex(layout)), layout=layout)
        yield row


def _place(word: Word, number: int, line: str) -> Span:
    """The span of one line of a word of several lines, without the blanks at its beginning."""
    said, start = line.lstrip(), word.span.line + number
    column = len(line) - len(said) + (1 if number else word.span.column)
    return Span(start, column, start, column + len(said))


def steps_of(program: CheckedFile, node: SyntaxNode, names: Known | None = None) -> tuple[Located, ...]:
    """Reads the tactics of a statement. Their errors are located at the statement."""
    calls = Statements(program.text, program.mesh, names).calls(node)
    try:
        return tuple(Located(str(call), tactic_of(call), partial(at_statement, program.text, span(node))) for call in calls)
    except Error as error:
        raise at_statement(program.text, node, error) from error
