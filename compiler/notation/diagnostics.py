"""Every way in which a program in index notation can be wrong, as a table, and the text that an error points into.

text.fail("unknown_axis", token, axis="dat", among=mesh)   -->

error: the mesh has no axis `dat`
  --> mlp.partita:3:20
   |
 3 | fn mlp(x: f32[B=512 @dat, D=256]) -> f32[B, D] {
   |                      ^^^ the mesh is data=4, model=2
help: did you mean `data`?
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from lark import Token, Tree

from ...dialects.errors import Error, Location, did_you_mean
from ...dialects.grammar import Node


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text: lines and columns from 1, the end behind the last sign."""

    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """From the start of this one to the end of the other."""
        return Span(self.line, self.column, other.end_line, other.end_column)


LONGEST = 200
"""How much of a name or a phrase an error shows."""

Where: TypeAlias = "Span | Node | Token"


def shortened(said: str) -> str:
    """A text of which only the ends are shown, if it is long."""
    return said if len(said) <= LONGEST else f"{said[: LONGEST // 2]}...{said[-LONGEST // 4 :]}"


def span(where: Where) -> Span:
    """Where a phrase or a word stands."""
    if isinstance(where, Span):
        return where
    at = where.meta if isinstance(where, Tree) else where
    line, column = getattr(at, "line", None) or 1, getattr(at, "column", None) or 1
    return Span(line, column, getattr(at, "end_line", None) or line, getattr(at, "end_column", None) or column + 1)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What is said of one kind of mistake; words in braces are filled in."""

    title: str
    label: str = ""
    help: str = ""


class Wrong(Error):
    """A mistake in a text; `kind` is its name in `DIAGNOSTICS`."""

    kind: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """The whole text of a file, for errors to point into."""

    file: str
    source: str

    def location(self, where: Where) -> Location:
        at = span(where)
        lines = self.source.split("\n")
        last = len(lines[at.line - 1].rstrip()) + 1 if 0 < at.line <= len(lines) else at.column + 1
        end = at.end_column if at.end_line == at.line else last
        location = Location.of(self.file, self.source, at.line, at.column, max(end, at.column + 1))
        # What stands in a Python file is shown with what is around it.
        return replace(location, text=linecache.getline(self.file, at.line).rstrip()) if self.file.endswith(".py") else location

    def said(self, where: Where) -> str:
        """The text of one phrase, on one line."""
        at, lines = span(where), self.source.split("\n")
        taken = lines[at.line - 1 : at.end_line]
        taken[-1] = taken[-1][: at.end_column - 1]
        taken[0] = taken[0][at.column - 1 :]
        return " ".join(line.strip() for line in taken)

    def wrong(self, kind: str, where: Where, among: Iterable[str] = (), notes: Iterable[str] = (), **words: object) -> Wrong:
        """The error of that kind. `among` are the names that the last word may have been meant to be."""
        diagnostic = DIAGNOSTICS[kind]
        words = {key: shortened(str(value)) for key, value in words.items()}
        otherwise = [diagnostic.help.format(**words)] if diagnostic.help else []
        helps = did_you_mean(str(next(iter(words.values()), "")), among, *otherwise, most=2)
        title, label = diagnostic.title.format(**words), diagnostic.label.format(**words)
        error = Wrong(title, location=self.location(where), label=label, notes=notes, helps=helps)
        error.kind = kind
        return error

    def fail(self, kind: str, where: Where, among: Iterable[str] = (), notes: Iterable[str] = (), **words: object) -> NoReturn:
        """Raises the error of that kind."""
        raise self.wrong(kind, where, among, notes, **words)


DIAGNOSTICS = {
    # --- spelling
    "unexpected": Diagnostic("`{found}` cannot stand here", "expected {expected}", "{cure}"),
    "too_deep": Diagnostic("this is nested too deeply", "", "give inner parts names: equations of their own, before this one"),
    "too_many": Diagnostic(
        "`{name}` has {count} equations when its calls are inlined",
        "expected at most {most}",
        "loop in Python, around functions",
    ),
    "no_sign": Diagnostic("`{sign}` is no sign of the notation", "", "{cure}"),
    "unfinished": Diagnostic("the text ends too early", "expected {expected}", "{cure}"),
    "empty": Diagnostic("`{file}` says nothing", "", "begin with `fn name(x: f32[B=8]) -> f32[B] {{ ... }}`"),
    # --- meshes and extents
    "mesh_twice": Diagnostic("the mesh is given twice", "the first is {first}", "say all axes at once: `mesh data=4, model=2`"),
    "axis_twice": Diagnostic("mesh axis `{axis}` is named twice", "", "give the second another name"),
    "axis_size": Diagnostic("mesh axis `{axis}` has size {size}", "", "the size is the number of devices along it, 1 or more"),
    "extent_twice": Diagnostic(
        "the extent `{name}` is given twice", "it is {value} already", "write `{name}` alone where it is used again"
    ),
    "extent_unknown": Diagnostic(
        "nothing says how much `{name}` is",
        "",
        "give it where it stands first: `{name}=8`; or for all functions: `let {name}=8`",
    ),
    "extent_lower": Diagnostic("`{name}` cannot name an extent", "extents are upper case", "write `{upper}`"),
    "extent_number": Diagnostic(
        "`{said}` is no extent", "", "extents are whole numbers, their names, and sums, products and exact quotients of these"
    ),
    "extent_negative": Diagnostic("`{said}` is {value}", "an extent is 0 or more", "check the sizes that it is made of"),
    "extent_large": Diagnostic(
        "`{said}` is too large for an extent", "an extent is below 2**63", "check the sizes that it is made of"
    ),
    "array_large": Diagnostic(
        "`{name}` is too large for an array", "an array has fewer than 2**63 bytes", "check the sizes that it is made of"
    ),
    "extent_divide": Diagnostic("`{said}` is no whole number", "{value}", "divide what is a multiple of it"),
    "array_upper": Diagnostic("`{name}` cannot name a value", "upper case names extents", "write `{lower}`"),
    # --- functions
    "function_twice": Diagnostic("`{name}` is defined twice", "also in line {line}", "give one of them another name"),
    "function_taken": Diagnostic("`{name}` cannot name a function", "{why}", "give it another name"),
    "name_python": Diagnostic("`{name}` is a word of Python", "", "programs become Python functions: give it another name"),
    "argument_twice": Diagnostic("argument `{name}` is named twice", "", "give the second another name"),
    "dtype_unknown": Diagnostic("`{name}` is no dtype", "", "f32, bf16, f16, i32, u32, bool, ..."),
    "dtype_wide": Diagnostic("`{name}` would become {short} in JAX", "", "write {short}, or set JAX_ENABLE_X64=1"),
    "return_missing": Diagnostic("`{name}` returns nothing", "", "end it with `return {last}`"),
    "return_early": Diagnostic("nothing can follow `return`", "", "let `return` stand last"),
    "return_unknown": Diagnostic(
        "`{name}` is no value of this function", "", "return an argument, or what an equation defines"
    ),
    "return_count": Diagnostic("`{name}` returns {given}, and promises {wanted}", "", "{cure}"),
    "return_type": Diagnostic(
        "`{value}` is {given}, and `{name}` promises {wanted}", "the result is promised here", "write `-> {given}`"
    ),
    "recursion": Diagnostic(
        "`{name}` calls itself", "{cycle}", "functions are inlined; write the steps out, or loop in Python"
    ),
    "call_inside": Diagnostic(
        "`{name}` computes whole arrays, and stands inside an expression", "", "give its result a name first: `y = {name}(...)`"
    ),
    "call_count": Diagnostic("`{name}` takes {wanted}, not {given}", "", "it is {signature}"),
    "call_argument": Diagnostic(
        "`{name}` takes whole arrays, and `{said}` is none", "", "give it a name first, and pass that name without indices"
    ),
    "call_type": Diagnostic(
        "argument `{argument}` of `{name}` is {wanted}, and `{value}` is {given}",
        "",
        "pass {wanted}, or change the argument's type",
    ),
    "call_results": Diagnostic("`{name}` has {wanted}, not {given}", "", "name each result: `a, b = {name}(...)`"),
    "call_rank": Diagnostic(
        "this result of `{name}` is {type}, and has {given} on the left",
        "",
        "one index for each of its {rank} dims, or none at all",
    ),
    # --- annotations
    "mesh_missing": Diagnostic("`@{axis}` names a mesh axis, and there is no mesh", "", "say it first: `mesh {axis}=4`"),
    "axis_unknown": Diagnostic(
        "the mesh has no axis `{axis}`", "the mesh is {mesh}", "add it to the mesh, or take one that it has"
    ),
    "axis_used": Diagnostic(
        "`{value}` has the axis `{axis}` twice", "", "an axis tiles one dim of a value: take it off one of them"
    ),
    "axis_divides": Diagnostic(
        "`{value}` cannot be tiled: {extent} does not divide over {axes}",
        "",
        "make the extent a multiple of {size}, or leave it whole",
    ),
    "axis_order": Diagnostic(
        "`{first}` comes before `{second}` here, and behind it in line {line}",
        "major to minor",
        "write the axes of a dim in one order everywhere, or tile the dim in the plan",
    ),
    "axis_on_parts": Diagnostic(
        "`@{axis}` stands behind {what}", "", "name the result's dim in a further equation, or tile it in a plan"
    ),
    # --- equations
    "value_twice": Diagnostic("`{name}` is defined twice", "also in line {line}", "give the second another name"),
    "left_twice": Diagnostic("`{name}` stands twice on the left", "", "each dim of a result has an index of its own"),
    "left_only": Diagnostic(
        "nothing says how many values `{name}` has",
        "it is not on the right",
        "declare its range: `{name}: 8`, or read along it",
    ),
    "left_parts": Diagnostic(
        "`+{name}` joins pieces, and the right side is one", "", "write `++` between the pieces, or `{name}` alone"
    ),
    "pieces": Diagnostic(
        "`++` joins pieces along one index, and the left names {count}", "", "mark that index on the left: `+j`"
    ),
    "index_unbound": Diagnostic(
        "`{name}` is no index here, and no value", "", "put it on the left, or fold over it: `sum({name}) ...`"
    ),
    "index_array": Diagnostic("`{name}` is an array, and cannot be an index too", "", "give the index another name"),
    "index_shadowed": Diagnostic("`{name}` is an index around here already", "", "give the inner one another name"),
    "index_ranges": Diagnostic(
        "`{name}` runs over {one} and over {other}", "extent {other} here", "use another index here, or make the extents equal"
    ),
    "index_unused": Diagnostic(
        "nothing below `{fold}` reads along `{name}`", "", "declare its range, `{fold}({name}: 8)`, or leave it out"
    ),
    "range_unknown": Diagnostic(
        "nothing says how many values `{name}` has",
        "no dim is read along it alone",
        "declare its range: `{name}: 8` on the left or in the fold",
    ),
    "join_uneven": Diagnostic("{extent} is no product of {names}", "{known}", "make the extent a multiple of what is known"),
    "value_unknown": Diagnostic("`{name}` is no value of this function", "", "it is neither an argument nor defined above"),
    "rank": Diagnostic("`{name}` has {rank}, and is read at {given}", "it is {type}", "one index for each dim"),
    "not_scalar": Diagnostic(
        "`{name}` is {type}, and stands here without indices", "", "read it at indices: `{name}[{indices}]`"
    ),
    "window": Diagnostic(
        "`{said}` runs from {low} to {high}, and the dim has {extent}",
        "outside of the dim",
        "only a window that is summed, or whose maximum is taken, may hang over; else stay within 0 and {last}",
    ),
    "index_float": Diagnostic("`{said}` is {dtype}, and positions are whole numbers", "", "cast it: `i32({said})`"),
    # --- types
    "dtypes": Diagnostic("`{sign}` of {one} and {other}", "", "cast one of them: `{one}(...)` or `{other}(...)`"),
    "number_large": Diagnostic("{number} does not fit", "expected a number from {low} to {high}", "{cure}"),
    "number": Diagnostic("{number} is no {dtype}", "", "write a whole number, or cast the other side: `f32(...)`"),
    "divide": Diagnostic("`/` of {dtype}", "", "`div` divides whole numbers and drops the rest; or cast: `f32(...)`"),
    "truth": Diagnostic("`{what}` takes truth values, and this is {dtype}", "", "compare it: `... != 0`"),
    "fold_position": Diagnostic(
        "`{fold}` gives a position along one index", "a second one", "join the dims in an equation before: `y[(i j)] = ...`"
    ),
    "fold_nothing": Diagnostic(
        "`{fold}` of nothing has no value", "an extent is 0", "`sum`, `prod`, `all` and `any` of nothing have one"
    ),
    "fold_dtype": Diagnostic("`{fold}` of {dtype}", "", "{cure}"),
    "function_unknown": Diagnostic(
        "there is no function `{name}`",
        "",
        "functions are ops by name (exp, tanh, ...), dtypes (f32, ...), `where`, and fns of this file",
    ),
    "fold_sign": Diagnostic(
        "`{name}` of one value",
        "",
        "the larger of two is `{name}(a, b)`; that of many is a fold over an index: `{name}(k) x[k]`",
    ),
    "function_count": Diagnostic("`{name}` takes {wanted}, not {given}", "", "it is `{name}({operands})`"),
    "function_dtype": Diagnostic("`{name}` takes no {dtypes}", "{why}", "cast what it takes: `{cast}(...)`"),
    "function_keyword": Diagnostic("`{name}` does not go with these parameters", "{why}", "{cure}"),
    "undefined": Diagnostic("`{said}` is no number", "{why}", "check the numbers that it is made of"),
    "primitive_unknown": Diagnostic(
        "JAX has no primitive `{name}`", "", "behind `lax.` stands a primitive of JAX, as the IR names it"
    ),
    "primitive": Diagnostic(
        "`lax.{name}` cannot be made so",
        "{why}",
        "give its parameters as the IR shows them, and the ranges of the left side: `y[i: 8]`",
    ),
    # --- plans
    "plan_twice": Diagnostic("plan `{name}` is written twice", "also in line {line}", "give one of them another name"),
    "plan_mesh": Diagnostic("plan `{name}` has no mesh", "", "say it before: `mesh data=4, model=2`"),
    "plan_function": Diagnostic("plan `{name}` has nothing to partition", "", "the file has no function: write `fn ...`"),
    "plan_of": Diagnostic("there is no function `{name}`", "", "name one of this file behind `of`"),
    "plan_value": Diagnostic("`{name}` is no value of `{function}`", "", "it has {known}"),
    "plan_dim": Diagnostic("`{name}` has no dim {dim}", "it is {type}", "its dims are {dims}"),
    "plan_spot": Diagnostic("which dim of `{name}`?", "", "write `{name}.0`, or the name of its extent"),
    "plan_axes": Diagnostic("`{what}` names no mesh axis", "", "say it at the end: `{what} @{axis}`"),
    "plan_range": Diagnostic(
        "no argument of `{function}` has a dim `{name}`", "", "name one: `x: f32[{name}=512]`, or `name x.0 as {name}`"
    ),
    "tactic": Diagnostic("{title}", "{label}", "{cure}"),
}
"""Every class of diagnostic. Each has a program in the gallery `tests/errors` that shows it."""
