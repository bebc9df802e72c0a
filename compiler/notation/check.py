"""Checks a whole file: its mesh, its extents, its functions (callees first) and its plans."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...dialects.grammar import Node, kinds, phrases, words
from ...dialects.mesh import Mesh
from ..ops.monoids import WRITTEN
from . import scalars
from .diagnostics import Text, span
from .functions import DEEPEST, Functions
from .read import tree
from .sizes import bind, size
from .terms import Function


@dataclass(frozen=True, slots=True)
class Program:
    """A file whose functions are checked; `plans` are read later, because they need the tactics."""

    text: Text
    mesh: Mesh | None
    functions: Mapping[str, Function]
    plans: Mapping[str, Node]
    order: Mapping[tuple[str, str], int]


def check(text: Text) -> Program:
    """The program of a text. Raises `Wrong` with the location of its first mistake."""
    items = tree(text)
    mesh = read_mesh(text, items)
    lets: dict[str, int] = {}
    for each in kinds(items, "lets"):
        for let in kinds(each, "let"):
            bind(text, words(phrases(let)[0])[0], size(text, phrases(let)[1], lets), lets)
    nodes = named(text, items, "function", "function_twice")
    for name, node in nodes.items():
        if name in scalars.functions() or name in (*WRITTEN, "where", "lax"):
            text.fail("function_taken", words(phrases(node)[0])[0], name=name, why="the notation has a function of this name")
        if name[0].isupper():
            text.fail("array_upper", words(phrases(node)[0])[0], name=name, lower=name.lower())
    functions = Functions(text, mesh, lets, {}, {})
    for name in callees_first(text, nodes):
        functions.function(nodes[name])
    done = {name: functions.done[name] for name in nodes}
    return Program(text, mesh, done, named(text, items, "plan", "plan_twice"), functions.order)


def read_mesh(text: Text, items: Node) -> Mesh | None:
    found = kinds(items, "mesh")
    if not found:
        return None
    if len(found) > 1:
        text.fail("mesh_twice", found[1], first=text.said(found[0]))
    axes: dict[str, int] = {}
    slow: list[str] = []
    sets: list[str] = []
    for axis in kinds(found[0], "axis"):
        name, number = words(phrases(axis)[0])[0], words(axis)[0]
        if name.text in axes:
            text.fail("axis_twice", name, axis=name)
        if not number.text.isdecimal() or not number.text.lstrip("0") or len(number.text) > 9:
            text.fail("axis_size", number, axis=name, size=number)
        axes[name.text] = int(number.text)
        slow += [name.text] * bool(kinds(axis, "slow"))
        sets += ["".join(words(phrases(each)[0])[0].text for each in kinds(axis, "devices"))]
        if sets[-1] != sets[0]:
            text.fail("mesh_devices", axis, axis=name, first=f"`{sets[0]}`" if sets[0] else "none", name=sets[0] or sets[-1])
    return Mesh(axes, slow=slow).on(sets[0])


def named(text: Text, items: Node, kind: str, twice: str) -> dict[str, Node]:
    """The items of a kind by name."""
    found: dict[str, Node] = {}
    for each in kinds(items, kind):
        word = words(phrases(each)[0])[0]
        if word.text in found:
            text.fail(twice, word, name=word, line=span(found[word.text]).line)
        found[word.text] = each
    return found


def callees_first(text: Text, nodes: Mapping[str, Node]) -> list[str]:
    """The functions, each after those that it calls. Raises `Wrong` for recursion."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if len(path) > DEEPEST:
            text.fail("too_deep", words(phrases(nodes[name])[0])[0])
        called = [words(call)[0] for call in nodes[name].find_data("call")]
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
