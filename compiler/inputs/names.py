"""Names of values, and the patterns that address them.

An argument or result is named by its path (`params/blocks/3/w1`), every other value by its tag or scope. A pattern is a
glob over the parts of a name: `*` stands for any part, `**` for any number of parts, `?` and `[abc]` for one character.
In a key, `/` and the glob characters are escaped with a backslash, in names and in patterns alike.

    params/**/w1    -->    params/blocks/0/w1, params/blocks/1/w1, ...
    params          -->    everything under it
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

from ...dialects.errors import Error, did_you_mean
from .checks import patterns_of

Patterns: TypeAlias = str | Sequence[str]

_SPECIAL = re.compile(r"([\\/*?\[\]])")
_PART = re.compile(r"(?:\\.|[^\\/])+", re.DOTALL)
_TOKEN = re.compile(r"\\.|\*+|\?|\[!?(?:\\.|[^\]\\])+\]|.", re.DOTALL)


def escape(key: object) -> str:
    r"""One part of a name, from a key of a tree: `"a/b*"` --> `a\/b\*`."""
    return _SPECIAL.sub(r"\\\1", str(key))


def join(*parts: str) -> str:
    """The name made of these parts, each escaped already; empty ones are left out."""
    return "/".join(part for part in parts if part)


def parts(name: str) -> list[str]:
    """The parts of a name or pattern, still escaped."""
    return _PART.findall(name)


def inner(names: Iterable[str]) -> set[str]:
    """The names of the inner nodes of the trees whose leaves are `names`."""
    found: set[str] = set()
    for name in names:
        split = parts(name)
        found.update("/".join(split[:depth]) for depth in range(1, len(split)))
    return found


@lru_cache(maxsize=1024)
def pattern(glob: str, under: bool = True) -> re.Pattern[str]:
    """The regular expression of one glob; with `under` it also takes every name below one that the glob takes."""
    split = parts(glob)
    text = ""
    for place, part in enumerate(split):
        if part == "**":
            text += r"(?:(?:\\.|[^\\/])+/)*" if place < len(split) - 1 else ".*"
        else:
            text += "".join(_token(token) for token in _TOKEN.findall(part)) + ("/" if place < len(split) - 1 else "")
    return re.compile(f"{text}(?:/.*)?" if under else rf"{text}(?:#\d+)?", re.DOTALL)


def _token(token: str) -> str:
    if token.startswith("*"):
        return r"(?:\\.|[^\\/])*"
    if token == "?":
        return r"(?:\\.|[^\\/])"
    if len(token) > 1 and token[0] == "[":
        return "[" + ("^" if token[1] == "!" else "") + token[1:-1].removeprefix("!").replace("^", r"\^") + "]"
    return re.escape(token)


def as_patterns(given: Patterns) -> tuple[str, ...]:
    """One pattern or several, as several; none at all where nothing is given. Raises Error for what is no pattern."""
    return patterns_of(given) if isinstance(given, str) or given != () else ()


def match(given: Patterns, names: Iterable[str], *, what: str = "value", under: bool = True) -> list[str]:
    """The names that one of the patterns takes, in the order of `names`.

    With `under` a pattern that names an inner node of a tree stands for all under it; without, the names are those of
    intermediate values, and `scope` also takes `scope#0`, `scope#1`, ..., which leave the scope together. Raises Error
    for a pattern that takes nothing.
    """
    every = list(names)
    taken: set[str] = set()
    for glob in as_patterns(given):
        accepts = pattern(glob, under).fullmatch
        found = [name for name in every if accepts(name)]
        if not found:
            raise unknown(glob, every, what)
        taken.update(found)
    return [name for name in every if name in taken]


def unknown(glob: str, names: Sequence[str], what: str = "value") -> Error:
    """The error of a pattern that takes nothing: it shows the nearest names."""
    helps = did_you_mean(glob, [*names, *inner(names)], most=3)
    if not helps:
        shown = ", ".join(f"`{name}`" for name in names[:8])
        helps = [f"there are {len(names)}: {shown}{', ...' if len(names) > 8 else ''}"] if names else []
        if what == "value" and glob.isidentifier():
            helps.append(f'name an intermediate value, also in a loop body, in the function: {glob} = pt.tag({glob}, "{glob}")')
    return Error(f"no {what} is named `{glob}`", helps=helps)


class Aval(Protocol):
    """What of an aval the pairing of successors looks at."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> object: ...


@dataclass(frozen=True, slots=True)
class Tree:
    """An argument, or a part of the result: its structure and the names and avals of its leaves."""

    structure: Hashable
    names: tuple[str, ...]
    avals: tuple[Aval, ...]

    @property
    def kind(self) -> Hashable:
        """Equal for trees that may succeed one another."""
        return self.structure, tuple((tuple(aval.shape), str(aval.dtype)) for aval in self.avals)


def successors(arguments: Sequence[Tree], results: Sequence[Tree]) -> Mapping[str, str]:
    """Which result leaf takes the place of which argument leaf when the program is called again.

    A result succeeds an argument when structure and avals are equal. Of several that are, the one of the same name does
    (`params` and `result/params`), and the rest in order, if as many results as arguments are left; otherwise none.

        step(params, opt, batch) -> (params, opt, loss)    -->    params/w: result/0/w, opt/m/w: result/1/m/w, ...
    """
    found: dict[str, str] = {}
    for kind in dict.fromkeys(tree.kind for tree in arguments if tree.names):
        before = [tree for tree in arguments if tree.kind == kind]
        after = [tree for tree in results if tree.kind == kind]
        pairs = [(old, new) for old in before for new in after if parts(old.names[0])[0] == _root(new)]
        before = [tree for tree in before if all(tree is not old for old, _ in pairs)]
        after = [tree for tree in after if all(tree is not new for _, new in pairs)]
        if len(before) == len(after):
            pairs += zip(before, after, strict=True)
        for old, new in pairs:
            found.update(zip(old.names, new.names, strict=True))
    return found


def _root(tree: Tree) -> str:
    """The key under which a part of the result stands: `params` of `result/params/w`."""
    split = parts(tree.names[0])
    return split[1] if len(split) > 1 else ""


_FIELDS = ("key", "idx", "name")


def path(keys: Sequence[object]) -> list[str]:
    """The parts of a leaf's name that its key path gives: `(DictKey("mlp"), SequenceKey(3))` --> `["mlp", "3"]`."""
    return [escape(_key(key)) for key in keys]


def _key(key: object) -> object:
    # DictKey and FlattenedIndexKey hold a key, SequenceKey an idx, GetAttrKey a name; a class may register its own kind.
    return next((getattr(key, field) for field in _FIELDS if hasattr(key, field)), key)
