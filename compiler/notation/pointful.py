"""One op as an equation of indices: its definition, grounded, with the op's own indices and arrays in the place of names.

    %7 = lax.dot_general %3, %5 {...} : f32[16, 8], f32[8, 32] -> f32[16, 32]   -->   v7[i, j] = sum(k) v3[i, k] * v5[k, j]

There is no table of ops here: what a definition says is printed, and what the notation has no words for is not said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...dialects.definitions.ground_form import (
    Access,
    Affine,
    Apply,
    Binary,
    Constant,
    Counter,
    Dim,
    Equation,
    Folding,
    Ground,
    Grounded,
    Part,
    inner,
)
from ...dialects.definitions.grounding import ground
from ...dialects.definitions.registry import definitions
from ...dialects.dtypes import short
from ...dialects.errors import Error
from ...dialects.params import Literal, ParamsAttr, show
from ..ops.monoids import WRITTEN
from .expressions import COMPARISONS

Shape = tuple[int, ...]
_SIGNS = {name: sign for sign, name in COMPARISONS.items()}


class Unsayable(Exception):
    """The notation has no words for this."""


@dataclass(frozen=True, slots=True)
class Value:
    """An operand or a result as it is printed: a name, or a number."""

    text: str
    dtype: str
    shape: Shape
    number: bool = False


@dataclass(frozen=True, slots=True)
class Pointful:
    """Prints one op; `letters` are names that no array has."""

    name: str
    params: ParamsAttr
    ins: Sequence[Value]
    outs: Sequence[Value]
    letters: Sequence[str]
    form: Grounded

    @classmethod
    def of(cls, name: str, params: ParamsAttr, ins: Sequence[Value], outs: Sequence[Value], letters: Sequence[str]) -> Pointful:
        definition = definitions.get(name)
        if definition is None or name == "whole":
            raise Unsayable
        try:
            form = ground(definition, params, [each.shape for each in ins], [each.shape for each in outs])
        except (Error, KeyError):
            raise Unsayable from None
        if len(form.extents) + 4 > len(letters) or any(0 in each.shape for each in (*ins, *outs)):
            raise Unsayable
        return cls(name, params, ins, outs, letters, form)

    def lines(self) -> list[str]:
        """An equation for each result. Raises `Unsayable`."""
        if any(isinstance(dim, Part) for equation in self.form.equations for dim in equation.targets[0].dims):
            return [self.joined()]
        return [self.equation(each) for each in self.form.equations]

    def equation(self, equation: Equation) -> str:
        if len(equation.targets) != 1 or equation.partials:
            raise Unsayable
        return f"{self.left(equation.targets[0], _read_alone(equation.body))} = {self.expr(equation.body)}"

    def joined(self) -> str:
        """Pieces behind one another along a sum of ranges."""
        pieces = [self.expr(each.body) for each in self.form.equations]
        parts = [dim.ids for each in self.form.equations for dim in each.targets[0].dims if isinstance(dim, Part)]
        if any(len(ids) != 1 for ids in parts):
            raise Unsayable
        first = parts[0][0]
        for number, ids in enumerate(parts):
            # Every piece has an index of its own along the dim that is joined, and one name for them.
            other = Pointful(self.name, self.params, self.ins, self.outs, self.renamed(ids[0], first), self.form)
            pieces[number] = other.expr(self.form.equations[number].body)
        return (
            f"{self.left(self.form.equations[0].targets[0], _read_alone(self.form.equations[0].body))} = {' ++ '.join(pieces)}"
        )

    def renamed(self, index: int, other: int) -> list[str]:
        letters = list(self.letters)
        letters[index] = self.letters[other]
        return letters

    # --- arrays ----------------------------------------------------------------------------------------------------

    def left(self, target: Access, known: frozenset[int]) -> str:
        out = self.outs[-1 - target.array]
        units = iter(self.letters[len(self.form.extents) :])
        dims: list[str] = []
        for dim in target.dims:
            match dim:
                case ():
                    dims.append(f"{next(units, '')}: 1")
                case (index,):
                    dims.append(self.letters[index] + ("" if index in known else f": {self.form.extents[index]}"))
                case tuple():
                    dims.append(f"({' '.join(self.letters[index] for index in dim)})")
                case Part(ids, _):
                    dims.append("+" + self.letters[ids[0]])
                case _:
                    raise Unsayable
        return f"{out.text}[{', '.join(dims)}]" if dims else out.text

    def access(self, access: Access) -> str:
        if access.array < 0:
            raise Unsayable
        value = self.ins[access.array]
        if value.number or not access.dims:
            return value.text
        return f"{value.text}[{', '.join(map(self.position, access.dims))}]"

    def position(self, dim: Dim) -> str:
        match dim:
            case ():
                return "0"
            case (index,):
                return self.letters[index]
            case tuple():
                return f"({' '.join(self.letters[index] for index in dim)})"
            case Affine(offset, factors, 1) if factors:
                terms = [(factor, self.letters[index]) for index, factor in factors]
                return affine(terms, offset)
            case _:
                raise Unsayable

    # --- expressions -----------------------------------------------------------------------------------------------

    def expr(self, body: Ground) -> str:
        match body:
            case Access():
                return self.access(body)
            case Constant(value):
                return number(value)
            case Counter((index,)):
                return self.cast(self.letters[index], "int32")
            case Binary("*", Constant(-1), right):
                return f"-{self.operand(right)}"
            case Binary(sign, left, right):
                return f"{self.operand(left)} {sign} {self.operand(right)}"
            case Apply(function, args):
                return self.apply(function, [self.expr(arg) for arg in args])
            case Folding(monoid, ids, inside) if ids and monoid in WRITTEN:
                known = _read_alone(inside)
                said = ", ".join(self.letters[i] + ("" if i in known else f": {self.form.extents[i]}") for i in ids)
                return f"{monoid}({said}) {self.factor(inside)}"
            case _:
                raise Unsayable

    def operand(self, body: Ground) -> str:
        text = self.expr(body)
        return f"({text})" if isinstance(body, Binary | Folding) or text.startswith("-") else text

    def factor(self, body: Ground) -> str:
        product = isinstance(body, Access | Apply) or (isinstance(body, Binary) and body.sign == "*")
        return self.expr(body) if product else f"({self.expr(body)})"

    def apply(self, function: str, args: Sequence[str]) -> str:
        match self.name if function == "@" else function:
            case "cast":
                return f"{short(self.outs[0].dtype)}({args[0]})"
            case "select" if len(args) == 3 and self.ins[0].dtype == "bool":
                return f"where({args[0]}, {args[2]}, {args[1]})"
            case "maximum" | "minimum":
                return f"{function[:3]}({', '.join(args)})"
            case name if name in _SIGNS:
                return f"{args[0]} {_SIGNS[name]} {args[1]}"
            case "and" | "or" if len(args) == 2:
                return f"{args[0]} {function} {args[1]}"
            case "not":
                return f"not {args[0]}"
            case own:
                return f"{own}({', '.join([*args, *self.given()])})"

    def given(self) -> Iterator[str]:
        yield from (f"{key}={show(value)}" for key, value in self.params.items())

    def cast(self, text: str, dtype: str) -> str:
        return text if self.outs[0].dtype == dtype else f"{short(self.outs[0].dtype)}({text})"


def affine(terms: Sequence[tuple[int, str]], offset: int) -> str:
    """`2*i + j - 1`; what is added stands before what is taken away. A part that begins at the beginning says so: `i + 0`."""
    said = [(factor, name if abs(factor) == 1 else f"{abs(factor)}*{name}") for factor, name in terms]
    said += [(offset, str(abs(offset)))] if offset else []
    if [*terms, offset] == [(1, name := terms[0][1]), 0]:
        return f"{name} + 0"
    (first, text), *more = sorted(said, key=lambda each: each[0] < 0)
    return ("-" if first < 0 else "") + text + "".join(f" {'-' if sign < 0 else '+'} {each}" for sign, each in more)


def number(value: Literal) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unsayable
    return repr(value)


def _read_alone(body: Ground) -> frozenset[int]:
    """The indices that stand alone in some dim, which says their range."""
    own = {dim[0] for dim in body.dims if isinstance(dim, tuple) and len(dim) == 1} if isinstance(body, Access) else set[int]()
    return frozenset(own.union(*(_read_alone(each) for each in inner(body))))


def letters(taken: Mapping[str, object] | set[str]) -> list[str]:
    """Names for indices: those of one letter that no array has, then `i1`, `i2`."""
    single = [each for each in "ijklmnopqrstuvabcdefghwxyz" if each not in taken]
    return [*single, *(f"i{n}" for n in range(1, 40) if f"i{n}" not in taken)]
