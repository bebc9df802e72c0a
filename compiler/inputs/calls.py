"""Calls of tactics as a trace prints them, read without evaluating anything.

tile('w1', 1, 'model')   -->   Call("tile", ("w1", 1, "model"))
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...dialects.errors import Error, Location

NESTS = "at"
"""The one call whose arguments may be calls: a tactic, applied at a scope."""


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
        """The call of a text. Raises Error, at this location, for a text that is not a call with literal arguments."""

        def wrong(why: str) -> Error:
            return Error("expected a tactic on this line", location=location, label=why, helps=helps)

        try:
            call = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise wrong(error.msg) from None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise wrong("this is not a call of a tactic")

        nested = call.func.id == NESTS

        def literal(node: ast.expr) -> object:
            if nested and isinstance(node, ast.Call):
                return cls.read(ast.unparse(node), location, *helps)
            try:
                return ast.literal_eval(node)
            except ValueError:
                raise wrong(f"`{ast.unparse(node)}` is not a literal") from None

        kwargs = {each.arg or "**": literal(each.value) for each in call.keywords}
        if "**" in kwargs:
            raise wrong("`**` is not a literal")
        return cls(call.func.id, tuple(map(literal, call.args)), kwargs)
