"""Where the attributes of a plan stand in the text of its program, and how they name nodes, operands and results.

lax.scan ... attributes {plan.place = [#plan.place<carry 1: 0 data*64>]}   -->   the second border `carry` of the loop
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from ...dialects.array import set_mesh
from ...dialects.ground.errors import Error, nearest
from ...dialects.mesh import Mesh
from ...dialects.plan import (
    ARGUMENT,
    PREFIX,
    ClaimAttr,
    ConflictAttr,
    HomeAttr,
    MarkAttr,
    MoveAttr,
    OnAttr,
    OwnAttr,
    PlaceAttr,
    PointAttr,
    ReadAttr,
    Said,
    StopAttr,
    SumAttr,
)
from ..program.program import Node, NodeId, Program, ValueId

T = TypeVar("T")

Holder = Operation | int
"""What an attribute stands at: an op, or an argument of the program by its number."""

NAMES: dict[type[Attribute], str] = {
    kind: PREFIX + name
    for kind, name in (
        (ClaimAttr, "claims"),
        (OwnAttr, "own"),
        (MarkAttr, "marks"),
        (PointAttr, "points"),
        (StopAttr, "stops"),
        (ConflictAttr, "conflicts"),
        (PlaceAttr, "place"),
        (HomeAttr, "home"),
        (SumAttr, "sums"),
        (MoveAttr, "moves"),
        (ReadAttr, "reads"),
        (OnAttr, "on"),
    )
}
"""The attributes that hold lists of each kind."""

RECONCILED = PREFIX + "reconciled"
"""The attribute of conflicts that the program's own claims have, and that are decided."""

TACTICS = PREFIX + "tactics"
"""The attribute of the module with the texts of the tactics."""


class Ends:
    """The names of a program's nodes and values at their ops."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.nodes: dict[Operation, list[Node]] = {}
        for node in program.nodes:
            self.nodes.setdefault(node.op, []).append(node)
        self.names: dict[NodeId, str] = {}
        for nodes in self.nodes.values():
            counted = Counter[str]()
            for node in nodes if len(nodes) > 1 or nodes[0].is_border else ():
                self.names[node.number] = f"{node.op_name} {counted[node.op_name]}"
                counted[node.op_name] += 1
        self.arguments = {value: at for at, value in enumerate(program.arguments)}
        self.last = cast(Operation, program.main.body.block.last_op)

    def name(self, node: Node) -> str:
        """How attributes of its op name a node; empty if it is the only one."""
        return self.names.get(node.number, "")

    def operand(self, number: NodeId, position: int) -> tuple[Operation, str]:
        """The op of a use, and how the use is named there."""
        if number == self.program.end:
            return self.last, f"operand {position}"
        node = self.program.nodes[number]
        return node.op, f"{self.name(node)} operand {position}".strip()

    def result(self, value: ValueId) -> tuple[Holder, str]:
        """Where a value is made, and how it is named there."""
        if (node := self.program.maker(value)) is None:
            return self.arguments[value], ARGUMENT
        return node.op, f"{self.name(node)} result {node.results.index(value)}".strip()

    def node(self, holder: Holder, name: str) -> Node:
        """The node of this name at an op."""
        found = (
            [node for node in self.nodes.get(holder, ()) if self.name(node) == name] if isinstance(holder, Operation) else []
        )
        if not found:
            raise Error(f"{said(holder)} has no node{f' `{name}`' if name else ' without a name'}", helps=self.known(holder))
        return found[0]

    def known(self, holder: Holder) -> list[str]:
        names = [self.name(node) for node in self.nodes.get(holder, ())] if isinstance(holder, Operation) else []
        return [f"its nodes are {', '.join(f'`{name}`' for name in names)}"] if any(names) else []

    def use(self, holder: Holder, end: str) -> tuple[NodeId, int]:
        """The use that is named at an op: the node and the position of its operand."""
        name, _, number = end.rpartition("operand ")
        if holder is self.last and end.startswith("operand "):
            if int(number) < len(self.program.returned):
                return self.program.end, int(number)
        elif number.isdigit() and (node := self.node(holder, name.strip())) and int(number) < len(node.operands):
            return node.number, int(number)
        raise Error(f"{said(holder)} has no `{end}`")

    def value(self, holder: Holder, end: str) -> ValueId:
        """The value that is named: an argument, a result or an operand."""
        if isinstance(holder, int) and end == ARGUMENT:
            return self.program.arguments[holder]
        name, _, number = end.rpartition("result ")
        if not number.isdigit() or "operand" in end:
            use, position = self.use(holder, end)
            return self.program.returned[position] if use == self.program.end else self.program.nodes[use].operands[position]
        node = self.node(holder, name.strip())
        if int(number) >= len(node.results):
            raise Error(f"{said(holder)} has no `{end}`")
        return node.results[int(number)]


def said(holder: Holder) -> str:
    """How errors name the holder of an attribute."""
    return f"argument {holder}" if isinstance(holder, int) else f"`{holder.name}`"


class Notes:
    """Attributes to be written at the ops and arguments of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ends = Ends(program)
        self.noted: dict[Holder, dict[str, list[Attribute]]] = {}

    def note(self, holder: Holder, attribute: Attribute, name: str = "") -> None:
        """Adds an attribute to the list of its kind."""
        name = name or NAMES[type(attribute)]
        self.noted.setdefault(holder, {}).setdefault(name, []).append(attribute)

    def module(self, mesh: Mesh, tactics: Iterable[str]) -> ModuleOp:
        """A copy of the program's module with all that was noted."""
        module = self.program.module.clone()
        for old, new in zip(self.program.module.walk(), module.walk(), strict=True):
            new.attributes |= {name: ArrayAttr(each) for name, each in self.noted.get(old, {}).items()}
        main = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
        every = [self.noted.get(at, {}) for at in range(len(self.program.arguments))]
        if any(every):
            said = ({name: ArrayAttr(each) for name, each in noted.items()} for noted in every)
            main.properties["arg_attrs"] = ArrayAttr([DictionaryAttr(each) for each in said])
        set_mesh(module, mesh)
        module.attributes[TACTICS] = ArrayAttr([StringAttr(each) for each in tactics])
        return module


class Texts:
    """The attributes that are read from a module, which loses them."""

    def __init__(self, module: ModuleOp) -> None:
        self.read: dict[str, list[tuple[Holder, Attribute]]] = {}
        main = cast(func.FuncOp, module.body.block.first_op)
        for at, each in enumerate(cast("Iterable[DictionaryAttr]", main.arg_attrs or ())):
            self.take(at, each.data)
        main.properties.pop("arg_attrs", None)
        for op in module.walk():
            if op is not module and any(name.startswith(PREFIX) for name in op.attributes):
                self.take(op, op.attributes)
                for name in [name for name in op.attributes if name.startswith(PREFIX)]:
                    del op.attributes[name]

    def take(self, holder: Holder, attributes: Mapping[str, Attribute]) -> None:
        known = {*NAMES.values(), RECONCILED}
        for name, each in attributes.items():
            if name.startswith(PREFIX) and name not in known:
                near = [f"did you mean `{one}`?" for one in nearest(name, known, 1)]
                raise Error(f"{said(holder)} has an unknown attribute `{name}`", helps=near)
            self.read.setdefault(name, []).extend((holder, one) for one in _listed(each))

    def has(self, *kinds: type[Attribute]) -> bool:
        """Whether anything of these kinds is said."""
        return any(NAMES[kind] in self.read for kind in kinds)

    def of(self, kind: type[Said[T]], name: str = "") -> Iterator[tuple[Holder, T]]:
        """What the attributes of a kind say, each with its holder."""
        name = name or NAMES[kind]
        for holder, each in self.read.get(name, ()):
            if not isinstance(each, kind):
                raise Error(f"`{name}` of {said(holder)} has {each}", helps=[f"it is a list of `#{kind.name}<{kind.LIKE}>`"])
            yield holder, cast("Said[T]", each).data


def tactics_of_text(module: ModuleOp) -> list[str]:
    """The texts of the tactics that a module names."""
    found = module.attributes.get(TACTICS)
    return [each.data for each in _listed(found) if isinstance(each, StringAttr)] if found is not None else []


def _listed(attribute: Attribute) -> Iterable[Attribute]:
    return cast("ArrayAttr[Attribute]", attribute) if isinstance(attribute, ArrayAttr) else [attribute]
