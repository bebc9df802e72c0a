"""The table of all mistakes that a program in index notation can contain, and the text that an error points into.

text.fail("axis_unknown", token, mesh, axis="dat", mesh=mesh)   -->   the mesh has no axis `dat`; did you mean `data`?
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from ...dialects.grammar import SyntaxNode, Word, span_of, words
from ...dialects.ground.errors import Error, Location, Span, did_you_mean, lines_of

LONGEST_PHRASE = 200
"""The most characters of a name or a phrase that an error shows."""

Where: TypeAlias = "Span | SyntaxNode | Word"


def shortened(said: str) -> str:
    """The text, or only its two ends if it is long."""
    return said if len(said) <= LONGEST_PHRASE else f"{said[: LONGEST_PHRASE // 2]}...{said[-LONGEST_PHRASE // 4 :]}"


def span(where: Where) -> Span:
    """The span of a phrase or a word."""
    return where if isinstance(where, Span) else span_of(where)


def word_of(node: SyntaxNode) -> Word:
    """The first word of a phrase."""
    return words(node)[0]


class Wrong(Error):
    """A mistake in a text; `kind` is its name in `DIAGNOSTICS`."""

    kind: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text into which errors point.

    For a part of a file, such as a literal in a Python program, `source` has blanks for the rest, and `whole` is the whole
    file.
    """

    file: str
    source: str
    whole: str = ""

    def location(self, where: Where) -> Location:
        at = span(where)
        lines = lines_of(self.source)
        last = len(lines[at.line - 1].rstrip()) + 1 if 0 < at.line <= len(lines) else at.column + 1
        end = at.end_column if at.end_line == at.line else last
        return Location.of(self.file, self.whole or self.source, at.line, at.column, max(end, at.column + 1))

    def said(self, where: Where) -> str:
        """The text of one phrase, on one line."""
        at = span(where)
        taken = [*lines_of(self.source)[at.line - 1 : at.end_line]]
        taken[-1] = taken[-1][: at.end_column - 1]
        taken[0] = taken[0][at.column - 1 :]
        return " ".join(line.strip() for line in taken)

    def wrong(self, kind: str, where: Where, among: Iterable[str] = (), notes: Iterable[str] = (), **words: object) -> Wrong:
        """The error of this kind at a place.

        If the first of `words` looks like a name `among` the known ones, the help asks so.

        `name` is the word at the place, if it is not given.
        """
        words = {"name": where, **words} if isinstance(where, Word) else words
        said = {key: shortened(str(value)) for key, value in words.items()}
        title, help, *label = (each.format(**said) for each in DIAGNOSTICS[kind])
        helps = did_you_mean(next(iter(said.values()), ""), among, help, most=2)
        error = Wrong(title, location=self.location(where), label="".join(label), notes=notes, helps=helps)
        error.kind = kind
        return error

    def fail(self, kind: str, where: Where, among: Iterable[str] = (), notes: Iterable[str] = (), **words: object) -> NoReturn:
        raise self.wrong(kind, where, among, notes, **words)


@dataclass(slots=True)
class Reader:
    """What reads a text, and raises the mistakes in it."""

    text: Text

    @property
    def fail(self):  # whose type is that of `Text.fail`, so that the checker sees that it does not return
        return self.text.fail


DIAGNOSTICS: Mapping[str, tuple[str, ...]] = {
    # --- spelling
    "unexpected": ("unexpected `{found}`", "{cure}", "expected {expected}"),
    "too_deep": ("the expression is nested too deeply", "name inner parts by equations before this one"),
    "too_many": (
        "`{name}` has {count} equations when its calls are inlined",
        "write the loop in Python, around functions",
        "expected at most {most}",
    ),
    "no_sign": ("the notation has no sign `{sign}`", "{cure}"),
    "unfinished": ("the text ends too early", "{cure}", "expected {expected}"),
    "unclosed": ("`{opened}` is not closed", "close it: `{wanted}`", "expected `{wanted}`"),
    "merge": (
        "a merge conflict is left in the text: `{mark}`",
        "keep the lines of one side, or write those that both want, and remove the marks of git",
    ),
    "empty": ("`{file}` {state}", "{contents}"),
    # --- meshes and extents
    "mesh_twice": ("the mesh is declared twice", "declare all axes at once: `mesh data=4, model=2`", "the first is {first}"),
    "mesh_devices": (
        "the axes of a mesh belong to one device set, and the first belongs to {first}",
        "write `@{name}` behind the name of each axis, `{axis}@{name}`, or of none",
    ),
    "mesh_part": ("{problem}", "write a part of a mesh as `print(mesh)` does: `mesh data@pod1=4 of [pod=2, data=4] at 4:8`"),
    "axis_twice": ("mesh axis `{axis}` is declared twice", "rename the second"),
    "axis_size": ("mesh axis `{axis}` has size {size}, expected 1 or more", "the size is the number of devices along the axis"),
    "chip_twice": (
        "the mesh names its chip twice",
        "devices are of one kind: remove one of the two",
        "the first is {first}",
    ),
    "memory_twice": ("the mesh says twice how much memory it has", "remove one of the two", "the first is {first}"),
    "chip_unknown": ("`{chip}` is not a chip", "write one of these", "the chips are {chips}"),
    "extent_twice": (
        "the extent `{name}` is declared twice",
        "write `{name}` alone when you use it again",
        "it is already {value}",
    ),
    "extent_unknown": (
        "the extent `{name}` has no value",
        "declare it at its first use: `{name}=8`; or for all functions: `let {name}=8`",
    ),
    "extent_lower": (
        "`{name}` cannot name an extent",
        "write `{upper}`; a mesh axis follows its extent: `8 @{name}`",
        "extents are upper case",
    ),
    "extent_number": (
        "expected an extent, got `{said}`",
        "extents are integers, their names, and sums, differences, products and exact quotients of these",
    ),
    "extent_negative": ("`{said}` is {value}", "check the sizes in it", "an extent is 0 or more"),
    "extent_large": ("`{said}` is too large for an extent", "check the sizes in it", "an extent is below 2**63"),
    "array_large": ("`{name}` is too large for an array", "check its extents", "an array has fewer than 2**63 bytes"),
    "extent_divide": ("`{said}` is not an integer", "divide a multiple of the divisor", "{value}"),
    "array_upper": ("`{name}` cannot name a value", "write `{lower}`", "upper case names extents"),
    # --- functions
    "function_twice": ("`{name}` is defined twice", "rename one of them", "first defined in line {line}"),
    "function_taken": ("`{name}` cannot name a function", "choose another name", "{why}"),
    "name_python": ("`{name}` is a Python keyword", "programs become Python functions: choose another name"),
    "argument_twice": ("argument `{name}` is declared twice", "rename the second"),
    "dtype_unknown": ("expected a dtype, got `{name}`", "dtypes are f32, bf16, f16, i32, u32, bool, ..."),
    "dtype_wide": ("`{name}` would become {short} in JAX", "write {short}, or set JAX_ENABLE_X64=1"),
    "return_missing": ("`{name}` returns nothing", "end it with `return {last}`"),
    "return_early": ("expected nothing after `return`", "move `return` to the end"),
    "return_unknown": ("this function has no value `{name}`", "return an argument, or a value that an equation defines"),
    "return_count": ("`{name}` returns {given}, but declares {wanted}", "{cure}"),
    "return_type": (
        "`{value}` is {given}, but `{name}` declares {wanted}",
        "write `-> {given}`",
        "the result is declared here",
    ),
    "recursion": ("`{name}` calls itself", "functions are inlined, so write out the steps, or loop in Python", "{cycle}"),
    "call_inside": (
        "`{name}` returns whole arrays, so an expression cannot call it",
        "name its result first: `y = {name}(...)`",
    ),
    "call_count": ("`{name}` takes {wanted}, got {given}", "its signature is {signature}"),
    "call_argument": (
        "`{name}` takes whole arrays, got `{said}`",
        "name the argument first, and pass the name without indices",
    ),
    "call_type": (
        "argument `{argument}` of `{name}` is {wanted}, but `{value}` is {given}",
        "pass {wanted}, or change the argument's type",
    ),
    "call_results": ("`{name}` returns {wanted}, but the left side names {given}", "name each result: `a, b = {name}(...)`"),
    "call_rank": (
        "this result of `{name}` is {type}, but the left side has {given}",
        "write an index for each of its {rank} dims, or none at all",
    ),
    # --- annotations
    "mesh_missing": ("`@{axis}` names a mesh axis, but the file has no mesh", "declare it first: `mesh {axis}=4`"),
    "axis_unknown": ("the mesh has no axis `{axis}`", "use an axis of the mesh, or add this one to it", "the mesh is {mesh}"),
    "axis_used": ("`{value}` has the axis `{axis}` twice", "an axis tiles at most one dim of a value: remove one of the two"),
    "axis_divides": (
        "`{value}` cannot be tiled: {extent} does not divide over {axes}",
        "make the extent a multiple of {size}, or do not tile this dim",
    ),
    "axis_order": (
        "`{first}` comes before `{second}` here, but after it in line {line}",
        "write the axes of a dim in the same order everywhere, or tile the dim in the plan",
        "axes are written from major to minor",
    ),
    "axis_on_parts": ("`@{axis}` cannot tile {what}", "tile the dim in another equation, or in a plan"),
    # --- equations
    "value_twice": ("`{name}` is defined twice", "rename the second", "first defined in line {line}"),
    "left_twice": ("the left side has index `{name}` twice", "use a different index for each dim of the result"),
    "left_only": (
        "index `{name}` has no range",
        "declare its range: `{name}: 8`, or read a dim with it",
        "the right side does not use it",
    ),
    "left_parts": (
        "`+{name}` joins pieces, but the right side is a single piece",
        "write `++` between the pieces, or `{name}` alone",
    ),
    "pieces": ("`++` joins pieces along one index, but the left side marks {count}", "mark that index on the left: `+j`"),
    "index_unbound": (
        "`{name}` is neither an index nor a value here",
        "put it on the left, or fold over it: `sum({name}) ...`",
    ),
    "index_array": ("`{name}` is an array and cannot be an index too", "rename the index"),
    "index_shadowed": ("`{name}` is already an index here", "rename the inner index"),
    "index_ranges": (
        "index `{name}` has ranges {one} and {other}",
        "use another index here, or make the extents equal",
        "extent {other} here",
    ),
    "index_unused": (
        "`{fold}` folds over `{name}`, but nothing reads along it",
        "declare its range, `{fold}({name}: 8)`, or remove it",
    ),
    "range_unknown": (
        "index `{name}` has no range",
        "declare its range: `{name}: 8` on the left or in the fold",
        "it reads no dim alone",
    ),
    "join_uneven": ("{extent} is not a product of {names}", "make the extent a multiple of the known ranges", "{known}"),
    "value_unknown": ("this function has no value `{name}`", "use an argument, or a value that is defined above"),
    "rank": ("`{name}` has {rank}, but is read at {given}", "write one index for each dim", "it is {type}"),
    "not_scalar": ("expected an element of `{name}`, got the whole array {type}", "read it at indices: `{name}[{indices}]`"),
    "window": (
        "`{said}` runs from {low} to {high}, but the dim has extent {extent}",
        "stay between 0 and {last}; only a window under `sum`, `max` or `min` may extend past the dim",
        "outside the dim",
    ),
    "index_float": ("expected an integer position, got `{said}`, which is {dtype}", "cast it: `i32({said})`"),
    # --- types
    "dtypes": (
        "`{sign}` takes operands of one dtype, got {one} and {other}",
        "cast one of them: `{one}(...)` or `{other}(...)`",
    ),
    "number_large": ("{number} does not fit", "{cure}", "expected a number from {low} to {high}"),
    "number": ("expected a number of dtype {dtype}, got {number}", "write an integer, or cast the other side: `f32(...)`"),
    "divide": ("`/` takes floats, got {dtype}", "use `div`, which drops the remainder, or cast: `f32(...)`"),
    "truth": ("`{what}` takes booleans, got {dtype}", "compare it: `... != 0`"),
    "fold_position": (
        "`{fold}` folds over one index",
        "join the dims in an earlier equation: `y[(i j)] = ...`",
        "a second index",
    ),
    "fold_nothing": (
        "`{fold}` over no elements has no value",
        "`sum`, `prod`, `all` and `any` have a value over no elements",
        "an extent is 0",
    ),
    "fold_dtype": ("`{fold}` does not take {dtype}", "{cure}"),
    "function_unknown": (
        "there is no function `{name}`",
        "functions are named ops (exp, tanh, ...), dtypes (f32, ...), `where`, and the functions of this file",
    ),
    "fold_sign": (
        "`{name}` takes two values or an index, got one value",
        "write `{name}(a, b)` for two values, or fold over an index: `{name}(k) x[k]`",
    ),
    "function_count": ("`{name}` takes {wanted}, got {given}", "its signature is `{name}({operands})`"),
    "function_dtype": ("`{name}` does not take {dtypes}", "cast its argument: `{cast}(...)`", "{why}"),
    "function_keyword": ("`{name}` does not take these parameters", "{cure}", "{why}"),
    "undefined": ("`{said}` has no value", "check the numbers in it", "{why}"),
    "primitive_unknown": ("JAX has no primitive `{name}`", "write a JAX primitive after `lax.`, as the IR names it"),
    "primitive": (
        "JAX does not accept this call of `lax.{name}`",
        "write its parameters as the IR shows them, and declare the ranges on the left: `y[i: 8]`",
        "{why}",
    ),
    # --- plans
    "plan_twice": ("plan `{name}` is defined twice", "rename one of them", "first defined in line {line}"),
    "plan_mesh": ("plan `{name}` has no mesh", "declare it first: `mesh data=4, model=2`"),
    "record_first": ("expected a tactic before `=>`", "`plan.save` writes below a tactic what it does"),
    "layout_row": ("expected a name, a colon and a layout", "write `layout x: f32[data*64, 8]`, as `plan.save` does"),
    "layout_text": ("`{layout}` is not a layout", "write a dtype and its dims, `f32[data*64, 8]`, as `plan.save` does"),
    "plan_of": ("there is no function `{name}`", "name a function of this file after `of`"),
    "plan_value": ("`{function}` has no value `{name}`", "it has {known}"),
    "plan_dim": ("`{name}` has no dim {dim}", "its dims are {dims}", "it is {type}"),
    "plan_spot": ("expected a dim of `{name}`", "write `{spot}`, or the name of an extent"),
    "plan_axes": ("`{what}` needs a mesh axis", "add it at the end: `{what} @{axis}`"),
    "plan_range": ("no argument of `{function}` has a dim `{name}`", "name one: `x: f32[{name}=512]`, or `name x.0 as {name}`"),
    "tactic": ("{title}", "{cure}", "{label}"),
}
"""For each kind of mistake its title, the help and, if it has one, the label at the carets; words in braces are filled in.

A program in the gallery `tests/errors` shows each of them.
"""
