"""Functions: the types in their heads, the mesh axes after dims, and the returned values."""

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...dialects.dtypes import long
from ...dialects.english import counted
from ...dialects.errors import Span
from ...dialects.grammar import Node, Word, kinds, phrases, words
from ...dialects.mesh import Mesh
from .diagnostics import Text, span
from .equations import Equations
from .expressions import check_dtype
from .sizes import bind, check_bytes, extent_of, size
from .terms import Array, Calling, Equation, Function

DEEPEST = 200
"""The deepest nesting of function calls."""
MOST = 1_000_000
"""The most equations of a function when its calls are inlined."""

Places = tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Functions:
    """Checks the functions of one file; `done` are those so far, `order` where two axes first shared a dim."""

    text: Text
    mesh: Mesh | None
    lets: Mapping[str, int]
    done: dict[str, Function]
    order: dict[tuple[str, str], int]

    def function(self, node: Node) -> Function:
        name = words(phrases(node)[0])[0]
        extents = dict(self.lets)
        arrays: dict[str, Array] = {}
        places: dict[str, Places] = {}
        for formal in kinds(node, "formal"):
            word = words(phrases(formal)[0])[0]
            self.check_name(word)
            array, at = self.type(phrases(formal)[1], str(word), extents)
            if array.name in arrays:
                self.text.fail("argument_twice", formal, name=array.name)
            arrays[array.name], places[array.name] = array, at
        arguments = tuple(arrays.values())
        results = [self.type(each, "result", extents) for each in kinds(node, "type")]
        statements, last = self.statements(node, Equations(self.text, extents, self.done, arrays, self.axes))
        returned = self.returned(node, last, arrays, [array for array, _ in results])
        made = Function(
            str(name),
            arguments,
            tuple(places[each.name] for each in arguments),
            tuple(array for array, _ in results),
            tuple(at for _, at in results),
            tuple(statements),
            returned,
            span(name),
            *self.inlined(name, statements),
        )
        self.done[made.name] = made
        return made

    def inlined(self, name: Word, statements: Sequence[Equation | Calling]) -> tuple[int, int]:
        """How deeply its calls are nested, and how many equations it has with those of the functions that it calls."""
        called = [self.done[each.function] for each in statements if isinstance(each, Calling) and each.params is None]
        depth = 1 + max((each.depth for each in called), default=0)
        count = len(statements) + sum(each.count for each in called)
        if depth > DEEPEST:
            self.text.fail("too_deep", name)
        if count > MOST:
            self.text.fail("too_many", name, name=name, count=count, most=MOST)
        return depth, count

    def check_name(self, word: Word) -> None:
        if word.text[0].isupper():
            self.text.fail("array_upper", word, name=word, lower=word.text.lower())
        if keyword.iskeyword(word.text):
            self.text.fail("name_python", word, name=word)

    def type(self, node: Node, value: str, extents: dict[str, int]) -> tuple[Array, Places]:
        """The type of an argument or a result, and the axes of its dims."""
        word = words(node)[0]
        dtype = long(str(word))
        check_dtype(self.text, word, dtype if dtype != str(word) or word.text == "bool" else "none")
        shape, names, at = list[int](), list[str | None](), list[tuple[str, ...]]()
        used: set[str] = set()
        for dim in kinds(node, "dim"):
            named, extent = kinds(dim, "word"), extent_of(dim)
            assert extent is not None
            shape.append(size(self.text, extent, extents))
            if named:
                bind(self.text, words(named[0])[0], shape[-1], extents)
            given = named or ([extent] if extent.data == "extent" else [])
            names.append(str(words(given[0])[0]) if given else None)
            at.append(self.axes(words(kinds(dim, "places")[0]), value, shape[-1], used))
        array = Array(value, dtype, tuple(shape), span(node), tuple(names))
        check_bytes(self.text, node, array)
        return array, tuple(at)

    def axes(self, axes: Sequence[Word], value: str, extent: int, used: set[str]) -> tuple[str, ...]:
        """The axes of one dim, major to minor. Raises `Wrong` for axes that cannot tile it."""
        size = 1
        for number, axis in enumerate(axes):
            if self.mesh is None:
                self.text.fail("mesh_missing", axis, axis=axis)
            if axis.text not in self.mesh:
                self.text.fail("axis_unknown", axis, self.mesh, axis=axis, mesh=self.mesh)
            if axis.text in used:
                self.text.fail("axis_used", axis, value=value, axis=axis)
            used.add(str(axis))
            size *= self.mesh[str(axis)]
            if extent % size:
                over = " and ".join(f"`{each}` ({self.mesh[str(each)]} devices)" for each in axes[: number + 1])
                self.text.fail("axis_divides", axis, value=value, extent=extent, axes=over, size=size)
            for major in axes[:number]:
                if line := self.order.get((str(axis), str(major))):
                    self.text.fail("axis_order", axis, first=major, second=axis, line=line)
                self.order.setdefault((str(major), str(axis)), axis.span.line)
        return tuple(map(str, axes))

    def statements(self, node: Node, equations: Equations) -> tuple[list[Equation | Calling], Node | None]:
        """The equations, checked, and the `return`."""
        found, last = list[Equation | Calling](), None
        for each in phrases(node):
            if last is not None:
                self.text.fail("return_early", each)
            if each.data == "returned":
                last = each
            elif each.data == "equation":
                for target in phrases(phrases(each)[0]):
                    self.check_name(words(target)[0])
                try:
                    found.append(equations.equation(each))
                except RecursionError:
                    raise self.text.wrong("too_deep", each) from None
        return found, last

    def returned(self, node: Node, last: Node | None, arrays: Mapping[str, Array], results: Sequence[Array]) -> tuple[str, ...]:
        name = str(words(phrases(node)[0])[0])
        if last is None:
            end = span(node)
            brace = Span(end.end_line, end.end_column - 1, end.end_line, end.end_column)
            self.text.fail("return_missing", brace, name=name, last=list(arrays)[-1] if arrays else "y")
        given = words(last)
        for word in given:
            if word.text not in arrays:
                self.text.fail("return_unknown", word, arrays, name=word)
        if len(given) != len(results):
            count = counted(len(given), "value")
            cure = _returned(list(map(str, given)), arrays, results)
            self.text.fail("return_count", last, name=name, given=count, wanted=counted(len(results), "result"), cure=cure)
        for word, wanted in zip(given, results, strict=True):
            if (made := arrays[str(word)]).type != wanted.type:
                self.text.fail("return_type", wanted.span, value=word, given=made.type, name=name, wanted=wanted.type)
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
