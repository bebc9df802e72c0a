"""A call or a text that is not closed: where it would end.

Megatron("model"     -->     `Megatron(` is not closed
                 ^ expected `)`
"""

import re
from typing import NamedTuple

CLOSES = {"(": ")", "[": "]", "{": "}"}
_CALL = re.compile(r"[A-Za-z]\w*\s*\(")
_PIECE = re.compile(r"""(?P<text>"([^"\\\n]|\\.)*"|'([^'\\\n]|\\.)*')|(?P<open>["'])|(?P<mark>[()\[\]{}])""")


class Unclosed(NamedTuple):
    """What is open, the sign that would close it, and where that is missing."""

    opened: str
    wanted: str
    at: int


def unclosed(source: str, start: int) -> Unclosed | None:
    """What is left open by the call that begins there; None if no call begins there, or if all of it is closed."""
    call = _CALL.match(source, start)
    if call is None:
        return None
    opened = [call[0]]
    for piece in _PIECE.finditer(source, call.end()):
        if piece["open"]:
            end = source.find("\n", piece.end())
            line = source[piece.start() : end if end >= 0 else len(source)].rstrip()
            return Unclosed(line, piece["open"], piece.start() + len(line))
        if piece["mark"] in CLOSES:
            opened.append(piece["mark"])
        elif piece["mark"] and piece["mark"] != CLOSES[opened[-1][-1]]:
            return Unclosed(opened[-1], CLOSES[opened[-1][-1]], len(source[: piece.start()].rstrip()))
        elif piece["mark"]:
            opened.pop()
            if not opened:
                return None
    return Unclosed(opened[-1], CLOSES[opened[-1][-1]], len(source.rstrip()))
