"""Reads calls of tactics, as a trace prints them, without evaluating anything.

tile('w1', 1, 'model')   -->   Call("tile", ("w1", 1, "model"))
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from ...dialects.ground.errors import Error, Location, did_you_mean
from .checks import shortened

NESTS = "at"
"""The only call whose arguments may be calls: a tactic that is applied at a scope."""

DEEPEST = 50
"""The deepest nesting in a call, of tactics, lists or signs."""


@dataclass(frozen=True, slots=True, repr=False)
class Call:
    """A call with literal arguments. `str` writes it as a trace does."""

    name: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict[str, object])

    def __str__(self) -> str:
        parts = [*map(repr, self.args), *(f"{key}={value!r}" for key, value in self.kwargs.items())]
        return f"{self.name}({', '.join(parts)})"

    __repr__ = __str__

    @classmethod
    def read(cls, text: str, location: Location | None = None, *helps: str) -> Call:
        """Parses a call. Raises Error, at this location, for a text that is not a call with literal arguments."""

        def wrong(why: str, *more: str) -> Error:
            return Error("expected a tactic on this line", location=location, label=why, helps=[*more, *helps])

        try:
            call = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise wrong(error.msg) from None
        except (MemoryError, RecursionError):
            # So Python says that its parser has too many things open.
            raise wrong("this is nested too deeply") from None
        except ValueError as error:
            raise wrong(str(error)) from None
        if _is_deep(call):
            raise wrong("this is nested too deeply")
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise wrong("this is not a call of a tactic")

        nested = call.func.id == NESTS

        def literal(node: ast.expr) -> object:
            if nested and isinstance(node, ast.Call):
                return cls.read(ast.unparse(node), location, *helps)
            try:
                return ast.literal_eval(node)
            except (ValueError, TypeError):
                cure = [f"put names in quotes: `{shortened(quoted)}`"] if (quoted := _quoted(call)) is not None else []
                raise wrong(f"`{shortened(ast.unparse(node))}` is not a literal", *cure) from None

        kwargs = {each.arg or "**": literal(each.value) for each in call.keywords}
        if "**" in kwargs:
            raise wrong("`**` is not a literal")
        return cls(call.func.id, tuple(map(literal, call.args)), kwargs)


def with_names(given: object, name: Callable[[str], str]) -> object:
    """A call, or a literal of one, in which texts are others: names of values."""
    match given:
        case Call():
            kwargs = {key: with_names(each, name) for key, each in given.kwargs.items()}
            return Call(given.name, tuple(with_names(each, name) for each in given.args), kwargs)
        case str():
            return name(given)
        case list() | tuple():
            made = [with_names(each, name) for each in cast("Sequence[object]", given)]
            return made if isinstance(given, list) else tuple(made)
        case dict():
            items = cast("Mapping[object, object]", given).items()
            return {with_names(key, name): with_names(each, name) for key, each in items}
        case _:
            return given


def no_argument(name: str, given: Iterable[str], signature: inspect.Signature) -> Error | None:
    """The error for the first argument name that a tactic does not take; None if it takes all."""
    if any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
        return None
    other = next((key for key in given if key not in signature.parameters), None)
    if other is None:
        return None
    helps = [*did_you_mean(other, signature.parameters), taken_by(name, signature)]
    return Error(f"`{other}` is no argument of `{name}`", helps=helps)


def taken_by(name: str, signature: inspect.Signature) -> str:
    """The help that lists the arguments of a tactic."""
    return f"it takes {name}({', '.join(signature.parameters)})"


def _quoted(call: ast.Call) -> str | None:
    """The call with its names in quotes, if it then has only literals: `FSDP(data)` --> `FSDP('data')`; otherwise None."""
    made, quotes = copy.deepcopy(call), _Quotes()
    made.args = [quotes.visit(each) for each in made.args]
    for each in made.keywords:
        each.value = quotes.visit(each.value)
    try:
        for each in (*made.args, *(each.value for each in made.keywords)):
            ast.literal_eval(each)
    except (ValueError, TypeError):
        return None
    return ast.unparse(made)


class _Quotes(ast.NodeTransformer):
    """Replaces names by strings, also dotted names such as `params.w1`."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.Constant(ast.unparse(node))


def _is_deep(call: ast.expr) -> bool:
    """Whether an expression is nested deeper than `DEEPEST`."""
    level: list[ast.AST] = [call]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in ast.iter_child_nodes(each)]
    return bool(level)
