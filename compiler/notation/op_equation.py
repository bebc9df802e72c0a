"""One op as an equation of indices: its definition, grounded, with the names of the program's indices and arrays.

    %7 = lax.dot_general %3, %5 {...} : f32[16, 8], f32[8, 32] -> f32[16, 32]   -->   v7[i, j] = sum(k) v3[i, k] * v5[k, j]

This file has no table of ops: it prints definitions, and refuses those that the notation cannot express.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ...dialects.definitions.ground_form import Dim, Equation, Ground, Grounded, subexpressions
from ...dialects.definitions.grounding import ground
from ...dialects.definitions.operators import SIGNS
from ...dialects.definitions.printer import Printer, Said
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Affine, Apply, Concat, Fold, Group, Number, Read, Var
from ...dialects.ground.dtypes import short
from ...dialects.ground.errors import Error
from ...dialects.params import ParamsAttr
from ..ops.monoids import WRITTEN
from .scalar_functions import keyword_texts
from .terms import type_text


class Unsayable(Exception):
    """Raised for an op that the notation cannot express."""


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """An operand or a result as it is printed: a name, or a number."""

    text: str
    dtype: str
    shape: tuple[int, ...]
    number: bool = False

    @property
    def type(self) -> str:
        return type_text(self.dtype, self.shape)


@dataclass(frozen=True, slots=True)
class Pointful:
    """Prints one op; `letters` are names that no array has."""

    name: str
    params: ParamsAttr
    ins: Sequence[PrintedValue]
    outs: Sequence[PrintedValue]
    letters: Sequence[str]
    form: Grounded

    @classmethod
    def of(
        cls, name: str, params: ParamsAttr, ins: Sequence[PrintedValue], outs: Sequence[PrintedValue], letters: Sequence[str]
    ) -> Self:
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
        """The equations of the results, one for each. Raises `Unsayable`."""
        if any(isinstance(dim, Concat) for equation in self.form.equations for dim in equation.targets[0].dims):
            return [self.joined()]
        return [f"{self.left(each)} = {self.right(each)}" for each in self.form.equations]

    def joined(self) -> str:
        """The equation of pieces that are concatenated along a sum of ranges."""
        first, *_ = equations = self.form.equations
        parts = [dim.indices for each in equations for dim in each.targets[0].dims if isinstance(dim, Concat)]
        if any(len(ids) != 1 for ids in parts):
            raise Unsayable
        pieces: list[str] = []
        for (index,), each in zip(parts, equations, strict=True):
            # Every piece has its own index along the joined dim; all have one name.
            letters = [*self.letters[:index], self.letters[parts[0][0]], *self.letters[index + 1 :]]
            pieces.append(replace(self, letters=letters).right(each))
        return f"{self.left(first)} = {' ++ '.join(pieces)}"

    def printer(self, equation: Equation) -> Printer:
        """The printer of an equation, which declares the range of each index that reads no dim alone."""
        alone = _read_alone(equation.body)
        return Printer({self.letters[i]: extent for i, extent in enumerate(self.form.extents) if i not in alone}, bare=True)

    def left(self, equation: Equation) -> str:
        if len(equation.targets) != 1 or equation.partials:
            raise Unsayable
        (target,), printer = equation.targets, self.printer(equation)
        out = self.outs[-1 - target.array]
        units = iter(self.letters[len(self.form.extents) :])
        dims: list[str] = []
        for dim in target.dims:
            match dim:
                case Group(()):
                    dims.append(f"{next(units, '')}: 1")
                case Group((i,)):
                    dims.append(printer.bound(self.index(i)))
                case Group() | Concat():
                    dims.append(printer.expr(self.position(dim)))
                case _:
                    raise Unsayable
        return f"{out.text}[{', '.join(dims)}]" if dims else out.text

    def right(self, equation: Equation) -> str:
        return self.printer(equation).expr(self.said(equation.body))

    def index(self, number: int) -> Var:
        return Var(self.letters[number])

    def position(self, dim: Dim) -> Said:
        match dim:
            case Group(ids):
                return Group(tuple(map(self.index, ids)))
            case Concat(ids):
                return Concat(tuple(map(self.index, ids)))
            case Affine(offset, moves, 1) if moves:
                return Affine(offset, tuple((self.index(i), factor) for i, factor in moves))
            case _:
                raise Unsayable

    def said(self, body: Ground) -> Said:
        """The expression with names instead of numbers and with the notation's functions. Raises `Unsayable`."""
        match body:
            case Read(array, dims) if array >= 0:
                value = self.ins[array]
                return Number(value.text) if value.number else Read(value.text, tuple(map(self.position, dims)))
            case Number(value) if isinstance(value, int | float) and not isinstance(value, bool):
                return body
            case Group((_,)):
                made, position = self.outs[0].dtype, self.position(body)
                return position if made == "int32" else Apply(short(made), (position,))
            case Apply(function, args):
                return self.apply(self.name if function == "@" else function, tuple(map(self.said, args)))
            case Fold(monoid, ids, inside, ()) if ids and monoid in WRITTEN:
                return Fold(monoid, tuple(map(self.index, ids)), self.said(inside))
            case _:
                raise Unsayable

    def apply(self, function: str, args: tuple[Said, ...]) -> Said:
        match function:
            case "cast":
                return Apply(short(self.outs[0].dtype), args)
            case "select" if len(args) == 3 and self.ins[0].dtype == "bool":
                return Apply("where", (args[0], args[2], args[1]))
            case "maximum" | "minimum":
                return Apply(function[:3], args)
            case _ if function in SIGNS:
                return Apply(function, args)
            case _:
                return Apply(function, args, params=", ".join(keyword_texts(self.params)))


def _read_alone(body: Ground) -> frozenset[int]:
    """The indices that read some dim alone, from which their range follows."""
    dims = body.dims if isinstance(body, Read) else ()
    own = (dim.indices for dim in dims if isinstance(dim, Group) and len(dim.indices) == 1)
    return frozenset[int]().union(*own, *map(_read_alone, subexpressions(body)))


def letters(taken: Mapping[str, object] | set[str]) -> list[str]:
    """Names for indices: single letters that no array has, then `i1`, `i2`."""
    single = [each for each in "ijklmnopqrstuvabcdefghwxyz" if each not in taken]
    return [*single, *(f"i{n}" for n in range(1, 40) if f"i{n}" not in taken)]
