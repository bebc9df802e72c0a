"""Checks a whole file: its mesh, its extents, its functions (callees first) and its plans."""

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...dialects.chips import CHIPS, DEFAULT
from ...dialects.grammar import SyntaxNode, Word, phrases, phrases_of, words
from ...dialects.ground.amounts import counted, read_bytes
from ...dialects.ground.dtypes import long
from ...dialects.ground.errors import Error, Span
from ...dialects.mesh import Mesh
from ..ops.monoids import WRITTEN
from . import scalar_functions
from .check_equations import Equations
from .check_expressions import check_dtype
from .diagnostics import Reader, Text, span, word_of
from .extents import check_bytes, extent_of, extent_value, name_extent
from .parse import tree
from .terms import Array, Calling, CheckedEquation, CheckedFunction


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file whose functions are checked; `plans` are read later, because they need the tactics."""

    text: Text
    mesh: Mesh | None
    functions: Mapping[str, CheckedFunction]
    plans: Mapping[str, SyntaxNode]
    order: Mapping[tuple[str, str], int]


def check(text: Text) -> CheckedFile:
    """Checks a text and returns its program. Raises `Wrong` with the location of its first mistake."""
    items = tree(text)
    mesh = read_mesh(text, items)
    lets: dict[str, int] = {}
    for each in phrases_of(items, "lets"):
        for let in phrases_of(each, "let"):
            name_extent(text, word_of(phrases(let)[0]), extent_value(text, phrases(let)[1], lets), lets)
    nodes = items_by_name(text, items, "function", "function_twice")
    for name, node in nodes.items():
        if name in scalar_functions.functions() or name in (*WRITTEN, "where", "lax"):
            text.fail("function_taken", word_of(phrases(node)[0]), name=name, why="the notation has a function of this name")
        if name[0].isupper():
            text.fail("array_upper", word_of(phrases(node)[0]), name=name, lower=name.lower())
    functions = Functions(text, mesh, lets, {}, {})
    for name in callees_first(text, nodes):
        functions.function(nodes[name])
    done = {name: functions.done[name] for name in nodes}
    return CheckedFile(text, mesh, done, items_by_name(text, items, "plan", "plan_twice"), functions.order)


def read_mesh(text: Text, items: SyntaxNode) -> Mesh | None:
    found = phrases_of(items, "mesh")
    if not found:
        return None
    if len(found) > 1:
        text.fail("mesh_twice", found[1], first=text.said(found[0]))
    axes: dict[str, int] = {}
    slow: list[str] = []
    sets: list[str] = []
    for axis in phrases_of(found[0], "axis"):
        name, number = word_of(phrases(axis)[0]), word_of(axis)
        if name.text in axes:
            text.fail("axis_twice", name, axis=name)
        if not number.text.isdecimal() or not number.text.lstrip("0") or len(number.text) > 9:
            text.fail("axis_size", number, axis=name, size=number)
        axes[name.text] = int(number.text)
        slow += [name.text] * bool(phrases_of(axis, "slow"))
        sets += ["".join(words(phrases(each)[0])[0].text for each in phrases_of(axis, "devices"))]
        if sets[-1] != sets[0]:
            text.fail("mesh_devices", axis, axis=name, first=f"`{sets[0]}`" if sets[0] else "none", name=sets[0] or sets[-1])
    chip, memory = read_chip(text, phrases_of(found[0], "chip")), read_memory(text, phrases_of(found[0], "memory"))
    own = Mesh(axes, slow=slow, chip=chip, memory=memory).on("".join(sets[:1]))
    return part_of(text, own, phrases_of(found[0], "whole"))


def part_of(text: Text, own: Mesh, found: Sequence[SyntaxNode]) -> Mesh:
    """The mesh itself or, if the text says of which set it is a part, that part."""
    if not found:
        return own
    said = word_of(found[0])
    try:
        return Mesh.parse(f"{own} {' '.join(said.text.split())}")
    except Error as error:
        text.fail("mesh_part", said, problem=error.title)


def read_chip(text: Text, found: Sequence[SyntaxNode]) -> str:
    """The chip that a mesh names, or the one of a mesh that names none."""
    chip = DEFAULT
    for each in found:
        key, name = map(word_of, phrases(each))
        if key.text != "chip":
            text.fail("axis_size", name, axis=key, size=name)
        if each is not found[0]:
            text.fail("chip_twice", each, first=text.said(found[0]))
        if name.text not in CHIPS:
            text.fail("chip_unknown", name, CHIPS, chip=name, chips=", ".join(CHIPS))
        chip = name.text
    return chip


def read_memory(text: Text, found: Sequence[SyntaxNode]) -> str:
    """How much of a device's memory a plan may use; empty for all of it."""
    memory = ""
    for each in found:
        key, unit = map(word_of, phrases(each))
        number = word_of(each)
        if key.text != "memory" or not read_bytes(number.text + unit.text):
            text.fail("axis_size", number, axis=key, size=number.text + unit.text)
        if each is not found[0]:
            text.fail("memory_twice", each, first=text.said(found[0]))
        memory = number.text + unit.text
    return memory


def items_by_name(text: Text, items: SyntaxNode, kind: str, twice: str) -> dict[str, SyntaxNode]:
    """The items of a kind by name. Raises `Wrong`, of kind `twice`, for a name that two of them have."""
    found: dict[str, SyntaxNode] = {}
    for each in phrases_of(items, kind):
        word = word_of(phrases(each)[0])
        if word.text in found:
            text.fail(twice, word, line=span(found[word.text]).line)
        found[word.text] = each
    return found


def callees_first(text: Text, nodes: Mapping[str, SyntaxNode]) -> list[str]:
    """The functions, each after those that it calls. Raises `Wrong` for recursion."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if len(path) > DEEPEST_CALLS:
            text.fail("too_deep", word_of(phrases(nodes[name])[0]))
        called = [word_of(call) for call in nodes[name].find_data("call")]
        for word in sorted((each for each in called if each.text in nodes), key=lambda word: word.start):
            call = word.text
            if call in (*path, name):
                around = (*path, name)
                cycle = " calls ".join(f"`{each}`" for each in (*around[around.index(call) :], call))
                text.fail("recursion", word, name=call, cycle=cycle)
            if call not in order:
                visit(call, (*path, name))
        order.append(name)

    for name in nodes:
        if name not in order:
            visit(name, ())
    return order


DEEPEST_CALLS = 200
"""The deepest nesting of function calls."""
MOST_EQUATIONS = 1_000_000
"""The most equations of a function when its calls are inlined."""


@dataclass(slots=True)
class Functions(Reader):
    """Checks the functions of one file; `done` are those so far. `order` has the line where two axes first share a dim."""

    mesh: Mesh | None
    lets: Mapping[str, int]
    done: dict[str, CheckedFunction]
    order: dict[tuple[str, str], int]

    def function(self, node: SyntaxNode) -> None:
        name = word_of(phrases(node)[0])
        extents = dict(self.lets)
        arrays: dict[str, Array] = {}
        for formal in phrases_of(node, "formal"):
            word = word_of(phrases(formal)[0])
            self.check_name(word)
            array = self.type(phrases(formal)[1], str(word), extents)
            if array.name in arrays:
                self.fail("argument_twice", formal, name=array.name)
            arrays[array.name] = array
        arguments = tuple(arrays.values())
        results = tuple(self.type(each, "result", extents) for each in phrases_of(node, "type"))
        statements, last = self.statements(node, Equations(self.text, extents, self.done, arrays, self.axes))
        returned, inlined = self.returned(node, last, arrays, results), self.inlined(name, statements)
        self.done[str(name)] = CheckedFunction(str(name), arguments, results, tuple(statements), returned, span(name), *inlined)

    def inlined(self, name: Word, statements: Sequence[CheckedEquation | Calling]) -> tuple[int, int]:
        """Returns the nesting depth of a function's calls, and its number of equations when they are inlined."""
        called = [self.done[each.function] for each in statements if isinstance(each, Calling) and each.params is None]
        depth = 1 + max((each.depth for each in called), default=0)
        count = len(statements) + sum(each.count for each in called)
        if depth > DEEPEST_CALLS:
            self.fail("too_deep", name)
        if count > MOST_EQUATIONS:
            self.fail("too_many", name, count=count, most=MOST_EQUATIONS)
        return depth, count

    def check_name(self, word: Word) -> None:
        if word.text[0].isupper():
            self.fail("array_upper", word, lower=word.text.lower())
        if keyword.iskeyword(word.text):
            self.fail("name_python", word)

    def type(self, node: SyntaxNode, value: str, extents: dict[str, int]) -> Array:
        """An argument or a result of a type."""
        word = word_of(node)
        dtype = long(str(word))
        check_dtype(self.text, word, dtype if dtype != str(word) or word.text == "bool" else "none")
        shape, names, at = list[int](), list[str | None](), list[tuple[str, ...]]()
        used: set[str] = set()
        for dim in phrases_of(node, "dim"):
            named, extent = phrases_of(dim, "word"), extent_of(dim)
            assert extent is not None
            shape.append(extent_value(self.text, extent, extents))
            if named:
                name_extent(self.text, word_of(named[0]), shape[-1], extents)
            given = named or ([extent] if extent.data == "extent" else [])
            names.append(str(word_of(given[0])) if given else None)
            at.append(self.axes(words(phrases_of(dim, "places")[0]), value, shape[-1], used))
        array = Array(value, dtype, tuple(shape), span(node), tuple(names), tuple(at))
        check_bytes(self.text, node, array)
        return array

    def axes(self, axes: Sequence[Word], value: str, extent: int, used: set[str]) -> tuple[str, ...]:
        """The axes of one dim, major to minor. Raises `Wrong` for axes that cannot tile it."""
        size = 1
        for number, axis in enumerate(axes):
            if self.mesh is None:
                self.fail("mesh_missing", axis, axis=axis)
            if axis.text not in self.mesh:
                self.fail("axis_unknown", axis, self.mesh, axis=axis, mesh=self.mesh)
            if axis.text in used:
                self.fail("axis_used", axis, value=value, axis=axis)
            used.add(str(axis))
            size *= self.mesh[str(axis)]
            if extent % size:
                over = " and ".join(f"`{each}` ({self.mesh[str(each)]} devices)" for each in axes[: number + 1])
                self.fail("axis_divides", axis, value=value, extent=extent, axes=over, size=size)
            for major in axes[:number]:
                if line := self.order.get((str(axis), str(major))):
                    self.fail("axis_order", axis, first=major, second=axis, line=line)
                self.order.setdefault((str(major), str(axis)), axis.span.line)
        return tuple(map(str, axes))

    def statements(self, node: SyntaxNode, equations: Equations) -> tuple[list[CheckedEquation | Calling], SyntaxNode | None]:
        """The checked equations, and the phrase of the `return`; None if there is none."""
        found, last = list[CheckedEquation | Calling](), None
        for each in phrases(node):
            if last is not None:
                self.fail("return_early", each)
            if each.data == "returned":
                last = each
            elif each.data == "equation":
                for target in phrases(phrases(each)[0]):
                    self.check_name(word_of(target))
                try:
                    found.append(equations.equation(each))
                except RecursionError:
                    raise self.text.wrong("too_deep", each) from None
        return found, last

    def returned(
        self, node: SyntaxNode, last: SyntaxNode | None, arrays: Mapping[str, Array], results: Sequence[Array]
    ) -> tuple[str, ...]:
        name = str(word_of(phrases(node)[0]))
        if last is None:
            end = span(node)
            brace = Span(end.end_line, end.end_column - 1, end.end_line, end.end_column)
            self.fail("return_missing", brace, name=name, last=list(arrays)[-1] if arrays else "y")
        given = words(last)
        for word in given:
            if word.text not in arrays:
                self.fail("return_unknown", word, arrays)
        if len(given) != len(results):
            count = counted(len(given), "value")
            cure = _returned(list(map(str, given)), arrays, results)
            self.fail("return_count", last, name=name, given=count, wanted=counted(len(results), "result"), cure=cure)
        for word, wanted in zip(given, results, strict=True):
            if (made := arrays[str(word)]).type != wanted.type:
                self.fail("return_type", wanted.span, value=word, given=made.type, name=name, wanted=wanted.type)
        return tuple(map(str, given))


def _returned(given: list[str], arrays: Mapping[str, Array], results: Sequence[Array]) -> str:
    """The help for a wrong number of returned values: the latest values of the declared types, or more types."""
    if len(given) > len(results):
        return f"declare the type of each after an arrow: `-> {', '.join(arrays[name].type for name in given)}`"
    for wanted in results[len(given) :]:
        fits = [name for name, array in arrays.items() if name not in given and array.type == wanted.type]
        if not fits:
            return "return a value for each type after `->`, or remove a type"
        given.append(fits[-1])
    return f"return a value for each type after the arrow: `return {', '.join(given)}`"
