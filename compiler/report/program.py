"""The program as the page draws it: arguments, ops and results, each in its fold, and the values between them."""

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

from ...rewrites.program.program import Node
from ..cost.flops import shown_op_name
from ..inputs.names import name_parts
from ..page.string_table import Json, Pools
from ..plan.source_lines import line_of_op
from ..plan.state import State
from ..views.listing import starred
from .scopes import FoldedScope, FoldTree, Scopes


class OpNumbers:
    """Numbers the nodes of the page: first the arguments, then the program's ops, then the results."""

    def __init__(self, plan: State) -> None:
        self.program = plan.source.program
        self.first = len(self.program.arguments)
        self.end = self.first + len(self.program.nodes)
        self.makers = [self.first + made if made >= 0 else -1 for made in self.program.producer]
        """For each value the number of the op that makes it, or of the argument that it is."""
        for number, value in enumerate(self.program.arguments):
            self.makers[value] = number

    def op(self, node: int, position: int = 0) -> int:
        """The number of an op; for the number after the last op, that of the result at `position`."""
        return self.first + node if node < len(self.program.nodes) else self.end + position


class Shown(NamedTuple):
    """A program of a page, and the kinds of its arguments, results and ops, by number.

    Of one kind are those with the same name, but for the numbers of layers, and from the same line.
    """

    json: Json
    kinds: list[int]


def program_rows(plan: State, pools: Pools) -> Shown:
    """Ops by number, with their folds, what they read and make; values by number, with their names."""
    program, tree, scopes = plan.source.program, FoldTree(), Scopes(plan, pools)
    numbers, names = OpNumbers(plan), plan.source.addresses.names
    arguments = _outside("argument", program.argument_names, tree)
    lines = [line_of_op(plan, node) for node in program.nodes]
    ops = scopes.folds(program, lines, tree)
    results = _outside("result", program.result_names, tree)
    # Thousands of ops come from a few hundred lines.
    known_lines = {key: pools.line(line) for key, line in {id(line): line for line in lines}.items()}
    places = [known_lines[id(line)] for line in lines]
    kinds = [*["argument"] * len(arguments), *_op_kinds(program.nodes), *["result"] * len(results)]
    json: Json = {
        "folds": tree.json(pools),
        "fold": [*arguments, *ops, *results],
        "kind": pools.each(kinds),
        "reads": [*[()] * len(arguments), *[node.operands for node in program.nodes], *zip(program.returned)],
        "name": [*map(names.__getitem__, program.values)],
        "maker": numbers.makers,
        "line": [*[-1] * len(arguments), *places, *[-1] * len(results)],
        "results": list(program.result_names),
    }
    outer = [("argument", starred(name), -1) for name in program.argument_names]
    outer += [("result", starred(name), -1) for name in program.result_names]
    made = [starred(names.get(node.main, "")) for node in program.nodes]
    known: dict[object, int] = {}
    return Shown(json, [known.setdefault(each, len(known)) for each in (*outer, *zip(repeat("op"), made, places))])


def _op_kinds(nodes: Sequence[Node]) -> list[str]:
    """The names of ops as they are shown. Thousands of ops share a signature, which has their parameters."""
    keys = [(node.op_name, id(node.signature)) for node in nodes]
    alike = dict(zip(keys, nodes, strict=True))
    shown = {key: shown_op_name(node) if not node.is_border else node.op_name for key, node in alike.items()}
    return [shown[key] for key in keys]


def _outside(kind: str, names: Sequence[str], tree: FoldTree) -> list[int]:
    """The folds of arguments or results. Layers that are alike share a path."""
    paths = [starred(f"{name}/") for name in names]
    numbers = {path: tree.number(_folds(kind, path)) for path in dict.fromkeys(paths)}
    return [numbers[path] for path in paths]


def _folds(kind: str, path: str) -> list[FoldedScope]:
    """The folds of an argument or a result: its path in the tree."""
    found = name_parts(path)
    outer = 2 if kind == "result" else 1
    first, inner = FoldedScope(kind, "/".join(found[:outer])), found[outer:]
    return [first, FoldedScope("path", "/".join(inner))] if inner else [first]
