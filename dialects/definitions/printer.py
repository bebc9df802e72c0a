"""Prints the tree of index notation as text that reads back as the same tree: definitions, and equations of programs.

Fold("sum", (k,), Apply("mul", (lhs[i, k], rhs[k])))   -->   sum(k) lhs[i, k] * rhs[k]
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..params import Literal
from .operators import ATOM, COMPARISON, FOLD, LEAST, NEGATIVE, PRODUCT, SIGNS, SUM
from .syntax_tree import Affine, Apply, Concat, Definition, Fold, Group, Guard, Number, Otherwise, Param, Read, Size, Var, Whole

Leaf: TypeAlias = "Group[Var] | Whole | Concat[Var] | Param | Size"
_Part: TypeAlias = "Leaf | Number[Literal] | Affine[Var] | Guard"
Said: TypeAlias = "_Part | Read[str, Said] | Apply[Said] | Fold[Var, Said] | Otherwise[Said]"
"""The nodes that can be printed. A number given as a string is printed unchanged."""


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints expressions.

    `ranges` are the extents to print where an index is bound, such as `sum(q: 3)`. With `bare`, arrays of rank 0 are printed
    without brackets.
    """

    ranges: Mapping[str, int] = field(default_factory=dict[str, int])
    bare: bool = False

    def expr(self, expr: Said, least: int = LEAST) -> str:
        """The text, in parentheses if it binds less than `least`."""
        text, level = self.said(expr)
        return f"({text})" if level < least else text

    def said(self, expr: Said) -> tuple[str, int]:
        """The text of an expression, and how strongly it binds."""
        match expr:
            case Number(value):
                text = (
                    "none" if value is None else "false" if value is False else value if isinstance(value, str) else repr(value)
                )
                return text, NEGATIVE if text.startswith("-") else ATOM
            case Affine():
                return affine(expr), SUM
            case Apply():
                return self.apply(expr)
            case Fold(monoid, indices, body, upto):
                bound = ", ".join(map(self.bound, indices)) + "".join(f" <= {index(each)}" for each in upto)
                return f"{monoid}({bound}) {self.expr(body, PRODUCT)}", FOLD
            case Otherwise(body, default):
                return f"{self.expr(body, SUM)} else {self.expr(default, SUM)}", LEAST
            case Read(array, dims, spread):
                inside = f"[{self.listed(dims)}]" if dims or not self.bare else ""
                return f"{array}{'*' * spread}{inside}", ATOM
            case Guard(variable, start, window):
                slides = f" + {index(window)}" if window is not None else ""
                return f"[{index(variable)} = {self.expr(start)}{slides}]", ATOM
            case _:
                return leaf(expr), ATOM

    def apply(self, apply: Apply[Said]) -> tuple[str, int]:
        """The text of an operator between its operands, or of a function with its arguments and parameters."""
        sign = SIGNS.get(apply.function)
        if sign is None:
            params = f", {apply.params}" if apply.params else ""
            return f"{apply.function}({self.listed(apply.args)}{params})", ATOM
        if len(apply.args) == 1:
            space = " " if sign.text.isalpha() else ""
            return f"{sign.text}{space}{self.expr(apply.args[0], ATOM if sign.level == NEGATIVE else sign.level)}", sign.level
        left, right = apply.args
        # Comparisons do not chain; the other signs associate to the left.
        first = sign.level + (sign.level == COMPARISON)
        return f"{self.expr(left, first)} {sign.text} {self.expr(right, sign.level + 1)}", sign.level

    def listed(self, exprs: Iterable[Said]) -> str:
        return ", ".join(map(self.expr, exprs))

    def bound(self, variable: Var) -> str:
        """The text of an index where it is bound, left of `=` or by a fold."""
        name = index(variable)
        return f"{name}: {self.ranges[name]}" if name in self.ranges else name


def index(variable: Var) -> str:
    return variable.name + ".." * variable.many


def leaf(expr: Leaf) -> str:
    match expr:
        case Group(()):
            return "0"
        case Group((variable,)):
            return index(variable)
        case Group(indices):
            return f"({' '.join(map(index, indices))})"
        case Whole(name, many):
            return f"{name}{'..' * many}:"
        case Concat(indices):
            return "+" + " ".join(map(index, indices))
        case Param(name, steps):
            return ".".join((name, *steps))
        case Size(variable):
            return f"|{index(variable)}|"


def affine(dim: Affine[Var]) -> str:
    """The text of an index expression, `2*i + j - 1`, added terms first.

    A part of a dim that begins at 0 is printed as `i + 0`.
    """
    said = [(factor, index(each) if abs(factor) == 1 else f"{abs(factor)}*{index(each)}") for each, factor in dim.factors]
    said += [(dim.offset, str(abs(dim.offset)))] if dim.offset else []
    if not dim.offset and [factor for _, factor in dim.factors] == [1]:
        return f"{said[0][1]} + 0"
    (first, text), *more = sorted(said, key=lambda each: each[0] < 0)
    return ("-" if first < 0 else "") + text + "".join(f" {'-' if sign < 0 else '+'} {each}" for sign, each in more)


def definition(definition: Definition) -> str:
    """The text of a definition, as a line of `definitions.def`."""
    printer = Printer()
    folds = {each.result: f"{each.monoid}({', '.join(map(index, each.variables))}) " for each in definition.partials}
    many = {each.name for each in definition.results if each.variadic}
    targets = (Read(each.array, each.dims, each.array in many) for each in definition.targets)
    left = ", ".join(folds.get(each.array, "") + printer.expr(each) for each in targets)
    head = f"{definition.name}({', '.join(each.name + '*' * each.variadic for each in definition.operands)})"
    return "   ".join([head, f"{left} = {printer.expr(definition.body)}", *_clauses(definition, printer)])


def _clauses(definition: Definition, printer: Printer) -> Iterator[str]:
    if definition.at:
        said = (f"{each.array or ''} {each.variable} = {printer.expr(each.source)}".lstrip() for each in definition.at)
        yield f"at {'; '.join(said)}"
    if definition.ravel is not None:
        yield "where ravel({}..) = ravel({}..)".format(*definition.ravel)
    defaults = [(name, Number(value)) for name, value in definition.defaults]
    for clause, pairs in (("size", definition.sizes), ("extents", definition.extents), ("default", defaults)):
        if pairs:
            yield f"{clause} " + ", ".join(f"{name} = {printer.expr(each)}" for name, each in pairs)
    if definition.forgotten:
        yield f"drop {', '.join(sorted(definition.forgotten))}"
    if definition.front is not None:
        yield f"by {definition.front}"
    if definition.backwards is not None:
        yield f"backwards {definition.backwards}"
