"""Statements of `plan` blocks and the calls of a trace: the same tactics, written in two ways.

tile w1.1 @model padded     <-->   tile('w1', 1, 'model', padded=True)
tile x.0, y.0 @data         <-->   Tile(values={'x': 0, 'y': 0}, axis='data')
tile range batch over data  <-->   TileRange(range='batch', axis='data')
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import cast

from ...dialects.grammar import SyntaxNode, Word, phrases, phrases_of, words
from ...dialects.ground.errors import Error
from ...dialects.mesh import Mesh
from ..inputs.tactic_calls import Call
from .addresses import Address
from .diagnostics import Reader, Text, Where, Wrong, word_of
from .parse import tree

# The names that need no quotes.
VALUE = re.compile(r"(?!range\b)[A-Za-z_*][\w/*#?]*")
AXIS = re.compile(r"(?!(?:fn|plan|mesh|let|return|and|or|not)\b)[A-Za-z_]\w*(?:\.\d+(?::\d+)?)?")


def at_statement(text: Text, where: Where, error: Error) -> Wrong:
    """Returns a tactic's error, located at its statement, at the word that the error is about."""
    location = text.location(where).narrowed(error.title)
    helps = [*error.helps] or ["see `docs/notation.md` for what a plan may hold"]
    found = Wrong(error.title, location=location, label=error.label, notes=error.notes, helps=helps)
    found.kind = "tactic"
    return found


@dataclass(frozen=True, slots=True)
class Known:
    """What statements may name: the values of a function, and the names of its extents."""

    function: str
    values: Mapping[str, Address]
    labels: dict[str, None]


@dataclass(slots=True)
class Statements(Reader):
    """Reads statements.

    `known` is None for a plan of a JAX function, where the plan itself looks the values up. `mesh` is None if any mesh will do.
    """

    mesh: Mesh | None = None
    known: Known | None = None

    def calls(self, node: SyntaxNode) -> list[Call]:
        """The calls that a statement stands for, one for each of its axes. Raises `Wrong` for unknown names."""
        match node.data:
            case "tile":
                return list(self._tile(node))
            case "tile_range":
                label, options = self._label(phrases_of(node, "range")[0]), self._options(node)
                axes = [self._axis(word) for word in words(node)]
                return [Call("TileRange", (), {"range": label, "axis": axis, **options}) for axis in axes]
            case "replicate":
                paths = [self._value(each) for each in phrases_of(node, "value")]
                values = paths if len(paths) > 1 else paths[0]
                return [Call("replicate", (values, axis)) for axis in self._axes(node)]
            case "label":
                (path, dim), label = self._spot(phrases(node)[0]), str(word_of(phrases(node)[1]))
                if self.known is not None:
                    self.known.labels[label] = None
                return [Call("name", (path, dim, label))]
            case "propagate":
                return [Call("propagate", (self._axis(word_of(node)),))]
            case _:
                try:
                    return [Call.read(str(word_of(node)))]
                except Error as error:
                    raise at_statement(self.text, node, error) from error

    def _tile(self, node: SyntaxNode) -> Iterator[Call]:
        spots, options = [self._spot(each) for each in phrases_of(node, "spot")], self._options(node)
        for axis in self._axes(node):
            if len(spots) == 1 and "held" not in options:
                yield Call("tile", (*spots[0], axis), options)
            else:
                yield Call("Tile", (), {"values": dict(spots), "axis": axis, **options})

    def _options(self, node: SyntaxNode) -> dict[str, object]:
        given = {str(word_of(each)): words(each) for each in phrases_of(node, "option")}
        found: dict[str, object] = {name: True for name in ("held", "padded") if name in given}
        if "block" in given:
            number = given["block"][1]
            found["block"] = int(number.text) if number.text.isdecimal() and len(number.text) < 19 else float(number.text)
        return found

    def _label(self, node: SyntaxNode) -> str:
        """The name of a range, which may be that of a dim: `params/w1.1`."""
        label = ".".join([_unquoted(word_of(phrases_of(node, "value")[0])), *map(_unquoted, words(node))])
        if self.known is not None and label not in self.known.labels:
            self.fail("plan_range", node, self.known.labels, name=label, function=self.known.function)
        return label

    def _spot(self, node: SyntaxNode) -> tuple[str, int | str]:
        """A value and one of its dims, by number or by the name of its range."""
        word, given = word_of(phrases_of(node, "value")[0]), words(node)
        path = self._value(phrases_of(node, "value")[0])
        if not given:
            self.fail("plan_spot", node, name=_unquoted(word), spot=_spot_of(word))
        dim = _unquoted(given[0])
        number = int(dim) if dim.lstrip("-").isdecimal() and given[0].type == "DIM" else None
        address = self.known.values.get(_unquoted(word)) if self.known is not None else None
        if address is not None and number is None and dim in address.array.extents:
            return path, address.array.extents.index(dim)
        if self.known is not None and address is not None:
            rank = len(address.array.shape)
            if dim not in self.known.labels if number is None else not -rank <= number < rank:
                dims = [*map(str, range(rank)), *(name for name in address.array.extents if name)]
                of = {"type": address.array.type, "dims": ", ".join(dims) or "none"}
                self.fail("plan_dim", given[0], name=address.name, dim=dim, **of)
        return path, dim if number is None else number

    def _value(self, node: SyntaxNode) -> str:
        """The address of a value. Patterns and numbered ops are returned as they are: the plan resolves them."""
        word = word_of(node)
        name = _unquoted(word)
        if self.known is None or any(mark in name for mark in "*?#") or name.startswith("result"):
            return name
        if name not in self.known.values:
            near = ", ".join(f"`{each}`" for each in list(self.known.values)[:8])
            self.fail("plan_value", word, self.known.values, name=name, function=self.known.function, known=near)
        return self.known.values[name].path

    def _axes(self, node: SyntaxNode) -> list[str]:
        found = words(phrases_of(node, "places")[0])
        if not found:
            what = self.text.said(node)
            self.fail("plan_axes", node, what=what, axis=next(iter(self.mesh or ()), "data"))
        axes = [self._axis(each) for each in found]
        for number, axis in enumerate(axes):
            if axis in axes[:number]:
                value = next(_unquoted(word_of(each)) for each in node.iter_subtrees_topdown() if each.data == "value")
                self.fail("axis_used", found[number], value=value, axis=axis)
        return axes

    def _axis(self, word: Word) -> str:
        # A loop, `t:8`, is no axis of the mesh.
        is_loop = ":" in word.text and "." not in word.text
        if self.mesh is not None and not is_loop and not self.mesh.parts(word.text.partition(".")[0], ()):
            self.fail("axis_unknown", word, self.mesh, axis=word, mesh=self.mesh)
        return str(word)


def _unquoted(word: Word) -> str:
    """A name, without its quotes."""
    return str(word)[1:-1] if word.type == "STRING" else str(word)


def _spot_of(word: Word) -> str:
    """How a dim of a value is written. A name in quotes keeps them: `"params/head.1"` --> `"params/head".1`."""
    name, dot, dim = _unquoted(word).rpartition(".")
    return f'"{name}".{dim}' if word.type == "STRING" and dot and dim.isalnum() else f"{word}.0"


@cache
def statement(call: str) -> str:
    """The statement for a line of a trace; the line itself if no shorter statement reads back as this line."""
    made = None if call.startswith("#") else _shorter(Call.read(call))
    if made is None:
        return call
    try:
        node = tree(Text("", made), "line")
        read = Statements(Text("", made)).calls(phrases(node)[0])
    except Error:
        return call
    return made if [*map(str, read)] == [call] else call


def _shorter(call: Call) -> str | None:
    """The statement for a call, if there may be one."""
    match call.name, call.args:
        case "tile", (str() as value, (int() | str()) as dim, str() as axis):
            return f"tile {_dim_of(value, dim)} @{axis}{_options_of(call.kwargs)}"
        case "Tile", ():
            values = cast("Mapping[str, int | str]", call.kwargs.get("values", {}))
            spots = ", ".join(_dim_of(value, dim) for value, dim in values.items())
            return f"tile {spots} @{call.kwargs.get('axis')}{_options_of(call.kwargs)}"
        case "TileRange", ():
            label = str(call.kwargs.get("range"))
            is_plain = VALUE.fullmatch(label.rpartition(".")[0] or label) and label.rpartition(".")[2]
            return (
                f"tile range {label if is_plain else _quoted(label)} over {call.kwargs.get('axis')}{_options_of(call.kwargs)}"
            )
        case "replicate", (values, str() as axis):
            named = cast("list[str]", values) if isinstance(values, list | tuple) else [str(values)]
            return f"replicate {', '.join(map(_quoted, named))} @{axis}"
        case "name", (str() as value, (int() | str()) as dim, str() as label):
            return f"name {_dim_of(value, dim)} as {label}"
        case "propagate", (str() as axis,):
            return f"propagate {axis}"
        case _:
            return None


def _options_of(given: Mapping[str, object]) -> str:
    flags = [f" {name}" for name in ("held", "padded") if given.get(name) is True]
    return "".join([*flags, *([f" block {given['block']}"] if "block" in given else [])])


def _dim_of(value: str, dim: int | str) -> str:
    return f"{_quoted(value)}.{dim if isinstance(dim, int) or dim.isidentifier() else _quoted(dim, always=True)}"


def _quoted(name: str, always: bool = False) -> str:
    return name if VALUE.fullmatch(name) and not always else f'"{name}"'
