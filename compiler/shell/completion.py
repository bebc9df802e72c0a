"""Completions of typed text: names part by part, dims, axes, ranges, tactics, commands, each with a description.

tile params/bl     -->   blocks/          24 values
tile params/w1.    -->   0  256;  1  1024, the range params/w1.1
tile params/w1.1 @ -->   data  4;  model  2
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain

from ...dialects.ground.amounts import counted
from ..advice.open_conflicts import open_keys
from ..advice.rewrite_candidates import places
from ..api.tactics import Tactic
from ..cost.counts import COLLECTIVES
from ..plan.named_laws import law_descriptions
from .command_table import TABLE, known_words
from .lowered_forms import FORMS
from .session import Session
from .typed_line import Typed
from .typed_tactics import STATEMENTS, calls


@dataclass(frozen=True, slots=True)
class Completion:
    """A word that may stand from column `start` of the line on, and its description."""

    text: str
    start: int
    meta: str = ""


_CALL = re.compile(r"(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)$")
_QUOTED = re.compile(r"[\"']([^\"']*)$")
_WORD = re.compile(r"[^\s,;]*$")
_LAW = re.compile(r"""\s*["']([^"']*)["']\s*,""")


def completions(session: Session, before: str) -> Iterator[Completion]:
    """The words that may follow the text before the cursor."""
    line = before[Typed(before).commands()[-1].start :]
    word = _WORD.search(line)
    typed = word[0] if word is not None else ""
    at, words = len(before) - len(typed), line[: len(line) - len(typed)].split()
    if (call := _CALL.search(line)) is not None:
        found = _in_call(session, call[1], call[2])
        at = len(before) - len(quoted[1] if (quoted := _QUOTED.search(call[2])) else re.split(r"[\s,(\[{]", call[2])[-1])
    elif not words:
        found = _starting(typed, {**known_words(), **{f"{name}(": meta for name, meta in calls().items()}})
    elif words[0] in STATEMENTS:
        found, skipped = _statement(session, words, typed)
        at += skipped
    elif words[0] in TABLE:
        takes = TABLE[words[0]].takes
        found = _argument(session, takes[min(len(words) - 1, len(takes) - 1)], typed) if takes else iter(())
    else:
        found = iter(())
    yield from (Completion(text, at, meta) for text, meta in found)


Found = Iterator[tuple[str, str]]


def _starting(typed: str, words: Mapping[str, str]) -> Found:
    return ((word, meta) for word, meta in words.items() if word.startswith(typed))


def _statement(session: Session, words: list[str], typed: str) -> tuple[Found, int]:
    """The words that may follow in a statement, and how many characters of the typed word stay as they are."""
    if "over" in words[2:] or words[0] == "propagate":
        return _starting(typed, _axes(session)), 0
    if words[0] == "tile" and words[1:2] == ["range"]:
        return (_starting(typed, _ranges(session)) if len(words) == 2 else _starting(typed, {"over": "then axes"})), 0
    if typed.startswith("@"):
        return ((f"@{axis}", meta) for axis, meta in _starting(typed[1:], _axes(session))), 0
    value, dot, dim = typed.rpartition(".")
    if dot and words[0] != "replicate":
        return _starting(dim, _dims(session, value)), len(value) + 1
    # A word without a comma after it ends the values.
    if not words[-1].endswith(",") and len(words) > 1:
        return _starting(typed, _behind(session, words)), 0
    ranges = {"range": "all dims of a range"} if words == ["tile"] else {}
    return chain(_starting(typed, ranges), _values(session, typed)), 0


def _behind(session: Session, words: list[str]) -> dict[str, str]:
    """The words that may follow the values of a statement, with descriptions."""
    if words[0] == "name":
        return {"as": "then the name"} if words[-1] != "as" else {}
    axes = {f"@{axis}": meta for axis, meta in _axes(session).items()}
    return {**axes, "padded": "", "held": "", "block": ""} if words[-1].startswith("@") and words[0] == "tile" else axes


def _argument(session: Session, kind: str, typed: str) -> Found:
    """The words for an argument of a command."""
    branches, full = dict.fromkeys(session.branches, "a branch"), {"full": "with memory and flops"}
    words: Mapping[str, Mapping[str, str]] = {
        "reason": dict.fromkeys(("collective", "conflict", "stop"), "by its number"),
        "kind": dict.fromkeys((*COLLECTIVES, "over"), ""),
        "all": {"all": "all rows", **_axes(session)},
        "full": {**full, "all": "and every layout"},
        "branch": branches,
        "before": {**branches, **full},
        "number": dict.fromkeys(map(str, range(1, len(open_keys(session.plan)) + 1)), ""),
        "form": dict.fromkeys(FORMS, ""),
        "help": {**known_words(), **calls()},
    }
    found = _starting(typed, words.get(kind, {}))
    values = _values(session, typed) if kind in ("value", "reason", "kind") else iter(())
    return chain(values, found) if kind == "reason" else chain(found, values)


def _in_call(session: Session, name: str, inside: str) -> Found:
    """The words inside of a call: names and axes in quotes, otherwise its parameters."""
    if (quoted := _QUOTED.search(inside)) is not None and len(re.findall("[\"']", inside)) % 2:
        if name == "rewrite":
            yield from _starting(quoted[1], _in_rewrite(session, inside))
            return
        yield from _starting(quoted[1], _axes(session))
        yield from _values(session, quoted[1])
        return
    typed, made = re.split(r"[\s,(\[{]", inside)[-1], Tactic.known.get(name)
    if made is not None and is_dataclass(made):
        yield from _starting(typed, {f"{each.name}=": str(each.type) for each in fields(made)})


def _in_rewrite(session: Session, inside: str) -> Mapping[str, str]:
    """The words for the arguments of `rewrite`: a law's name, the places where it applies."""
    law = _LAW.match(inside)
    if law is None:
        return law_descriptions()
    return places(session.plan, law[1])


def _values(session: Session, typed: str) -> Found:
    """Names of values, each with the number of values under it, or with its layout."""
    for name, node, goes_on in session.names.under(typed):
        if goes_on:
            yield name, counted(node.count - (node.value is not None), "value")
        else:
            yield name, session.plan.layout_text(node.value) if node.value is not None else ""


def _axes(session: Session) -> dict[str, str]:
    return {axis: counted(size, "device") for axis, size in session.plan.mesh.axes.items()}


def _ranges(session: Session) -> dict[str, str]:
    """The names of ranges, each with a dim that has it."""
    plan, shape = session.plan, session.plan.source.program.shape
    first: dict[int, str] = {}
    for name, value in plan.source.addresses.arguments.items():
        for dim, extent in enumerate(shape(value)):
            first.setdefault(plan.source.classes.of(value, dim), f"{extent}: {name}.{dim}")
    return {name: first.get(root, "") for name, root in plan.range_roots.items()}


def _dims(session: Session, value: str) -> dict[str, str]:
    """The dims of a value, by number."""
    plan, addresses = session.plan, session.plan.source.addresses
    number = (addresses.arguments | addresses.results).get(value)
    if number is None:
        inside = addresses.inside.get(value)
        if not inside:
            return {}
        number = inside[0]
    names = {root: name for name, root in plan.range_roots.items()}
    of = plan.source.classes.of
    dims = enumerate(plan.source.shape(number))
    return {str(dim): f"{extent} {names.get(of(number, dim), '')}".rstrip() for dim, extent in dims}
