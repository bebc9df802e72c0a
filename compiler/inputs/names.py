"""Names of values, and the patterns that address them.

An argument or result is named by its path (`params/blocks/3/w1`), every other value by its tag or scope. A pattern is a
glob over the parts of a name: `*` matches any part, `**` any number of parts, `?` and `[abc]` one character.
In a key, `/`, the glob characters, and characters that cannot be seen are escaped with a backslash, both in names and in
patterns.

    params/**/w1    -->    params/blocks/0/w1, params/blocks/1/w1, ...
    params          -->    everything under it
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import TypeAlias

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error, did_you_mean, nearest
from ..jax_private import Shaped
from .checks import patterns_of, shortened

Patterns: TypeAlias = str | Sequence[str]

SHOWN = 8
"""The most names that an error lists."""

_SPECIAL = re.compile(r"([\\/*?\[\]])")
# What ends a line, is not shown, or has no encoding.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_PART = re.compile(r"(?:\\.|[^\\/])+", re.DOTALL)
# One character of a part, as names write it, and any number of them; any number of parts.
_ONE = r"(?:\\u[0-9a-f]{4}|\\.|[^\\/])"
_STAR = rf"{_ONE}*"
_PARTS = r"(?:(?:\\.|[^\\/])+/)*"
_GLOB = re.compile(r"\\.|([*?\[])", re.DOTALL)
_NUMBER = re.compile(r"#\d+")
_TOKEN = re.compile(r"\\u[0-9a-f]{4}|\\.|\*+|\?|\[!?(?:\\.|[^\]\\])+\]|.", re.DOTALL)


def escape(key: object) -> str:
    r"""One part of a name, from a key of a tree: `"a/b*"` --> `a\/b\*`. What is not seen is written by its number, `\u000a`.

    Every name of a program is made by this function, so any key can be printed, stands on one line of a plan file, and is
    read back from there.
    """
    return _UNSEEN.sub(
        lambda found: f"\\u{ord(found[0]):04x}", _SPECIAL.sub(r"\\\1", str.__str__(key) if isinstance(key, str) else str(key))
    )


@lru_cache(maxsize=1 << 12)
def escape_parts(name: str) -> str:
    """Escapes each part of a name that a program gives, such as a tag or a scope."""
    return "/".join(map(escape, name.split("/")))


def join(*parts: str) -> str:
    """Joins parts, which are escaped already, to a name. Empty parts are left out."""
    return "/".join(part for part in parts if part)


def name_parts(name: str) -> list[str]:
    """Splits a name or a pattern into its parts, which stay escaped."""
    # Only a backslash keeps a slash in a part.
    return _PART.findall(name) if "\\" in name else [*filter(None, name.split("/"))]


def beginnings(split: Sequence[str]) -> list[str]:
    """The names that consist of the first parts, up to the whole: `a`, `b` --> `a`, `a/b`."""
    return ["/".join(split[:depth]) for depth in range(1, len(split) + 1)]


def inner_nodes(names: Iterable[str]) -> set[str]:
    """The names of the inner nodes of the trees whose leaves are `names`."""
    found: set[str] = set()
    for name in names:
        found.update(beginnings(name_parts(name))[:-1])
    return found


@lru_cache(maxsize=1024)
def pattern(glob: str, under: bool = True) -> re.Pattern[str]:
    """Compiles a glob to a regular expression. With `under`, it also matches every name below a matching name.

    Without it, the names are those of intermediate values: `scope` also matches `scope#0`, `scope#1`, ..., the values that
    leave the scope.
    """
    split = [part for part, after in zip_longest(name_parts(glob), name_parts(glob)[1:]) if not part == after == "**"]
    text = ""
    for number, part in enumerate(split, start=1):
        slash = "/" if number < len(split) else ""
        text += (_PARTS if slash else ".*") if part == "**" else _glob_regex(part) + slash
    try:
        return re.compile(f"{text}(?:/.*)?" if under else rf"{text}(?:#\d+)?", re.DOTALL)
    except re.error as error:
        raise Error(f"`{shortened(glob)}` is not a pattern: {error.msg}", helps=["in a key, `[` is written `\\["]) from None


def _glob_regex(part: str) -> str:
    """The regular expression of one part of a glob.

    Text between two stars is matched at its first occurrence only. A later one would not help the star behind it, and
    trying all of them could take for ever.
    """
    first, *between = "".join(map(_token, _TOKEN.findall(part))).split(_STAR)
    return first + "".join(f"(?>{_STAR}?{each})" for each in between[:-1]) + "".join(f"{_STAR}{each}" for each in between[-1:])


def _token(token: str) -> str:
    if token.startswith("*"):
        return _STAR
    if token == "?":
        return _ONE
    if len(token) > 1 and token[0] == "[":
        inside = re.sub(r"([\^[&~|])", r"\\\1", token[1:-1].removeprefix("!"))
        return "[" + ("^" if token[1] == "!" else "") + inside + "]"
    return re.escape(token)


def as_patterns(given: Patterns) -> tuple[str, ...]:
    """Checks one pattern or several, and returns a tuple; empty if nothing is given. Raises Error for a non-string."""
    return () if isinstance(given, tuple) and not given else patterns_of(given)


def literal_name(glob: str) -> str:
    """The only name that a pattern matches; empty if it has `*`, `?` or `[abc]`."""
    return "" if any(found[1] for found in _GLOB.finditer(glob)) else "/".join(name_parts(glob))


@dataclass(frozen=True)
class Names:
    """An ordered list of names to match patterns against. A pattern without wildcards is looked up, not scanned for."""

    every: Sequence[str]
    under: bool = True
    """Whether a pattern also matches the names below a match, as in `pattern`."""

    def matched(self, glob: str) -> Sequence[str]:
        """The names that a pattern matches, in order."""
        if name := literal_name(glob):
            # Of sorted names, those that go on with a sign are together: they come before those with the next sign.
            first, end = (bisect_left(self._sorted, name + sign) for sign in ("/0" if self.under else "#$"))
            more = [each for each in self._sorted[first:end] if self.under or _NUMBER.fullmatch(each, len(name))]
            return sorted([name, *more] if name in self._at else more, key=self._at.__getitem__)
        accepts = pattern(glob, self.under).fullmatch
        return [name for name in self.every if accepts(name)]

    @cached_property
    def _at(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.every)}

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.every)


def accepting(globs: Iterable[str]) -> Callable[[str], bool]:
    """A function that decides whether one of the patterns matches a name."""
    names = {name for glob in globs if (name := literal_name(glob))}
    others = [pattern(glob).fullmatch for glob in globs if not literal_name(glob)]

    def accepts(name: str) -> bool:
        is_named = bool(names) and not names.isdisjoint(beginnings(name_parts(name)))
        return is_named or any(accept(name) for accept in others)

    return accepts


def match(given: Patterns, names: Iterable[str] | Names, *, what: str = "value") -> list[str]:
    """The names that one of the patterns matches, in the order of `names`. Raises Error for a pattern without a match."""
    known = names if isinstance(names, Names) else Names(list(names))
    taken: set[str] = set()
    for glob in as_patterns(given):
        found = known.matched(glob)
        if not found:
            raise unknown(glob, known.every, what)
        taken.update(found)
    return [name for name in known.every if name in taken]


def unknown(glob: str, names: Sequence[str], what: str = "value") -> Error:
    """The error for a pattern without a match. It lists the nearest names."""
    leaves = [name for name in names if name.startswith(f"{glob}/")]
    ends = [name for name in names if name.endswith(f"/{glob}")]
    if leaves:
        helps = [f"`{glob}` is a tree: name its leaves, {listed(leaves)}, or all of them, `{glob}/*`"]
    elif ends:
        helps = [f"names begin with their argument: did you mean {listed(ends)}?"]
    else:
        helps = near(glob, [*names, *inner_nodes(names)])
    if not helps:
        several = f"the arguments are {trees(names)}" if what == "argument" else f"names begin with {trees(names)}"
        shown = f"there are {len(names)}: {listed(names, SHOWN)}" if len(names) <= SHOWN else several
        helps = [shown] if names else []
        if what == "value" and glob.isidentifier():
            helps.append(f'name an intermediate value, also in a loop body, in the function: {glob} = pt.tag({glob}, "{glob}")')
    return Error(f"no {what} is named `{glob}`", helps=helps)


def near(glob: str, names: Sequence[str]) -> list[str]:
    """A help with the names nearest to a pattern, by spelling or by a part that they contain; empty if there are none."""
    if not literal_name(glob) and (patterns := _corrected(glob, names)):
        return [f"did you mean {listed(patterns)}?"]
    return did_you_mean(glob, names, most=3) or [
        f"did you mean {listed(found)}?" for found in [_with_part(glob, names)] if found
    ]


def _corrected(glob: str, names: Sequence[str]) -> list[str]:
    """Patterns with one part respelled, so that they match: `**/kernal` --> `**/kernel`."""
    found, split = list[str](), name_parts(glob)
    for at, part in enumerate(split):
        others = (
            {each for name in _matched(split, at, "*", names) for each in name_parts(name)}
            if literal_name(part)
            else set[str]()
        )
        near = nearest(part, sorted(others))
        found += ["/".join([*split[:at], each, *split[at + 1 :]]) for each in near if _matched(split, at, each, names)]
    return found


def _matched(split: Sequence[str], at: int, part: str, names: Sequence[str]) -> Sequence[str]:
    """The names that a pattern matches when part number `at` is replaced by `part`."""
    return Names(names).matched("/".join([*split[:at], part, *split[at + 1 :]]))


def _with_part(glob: str, names: Iterable[str]) -> list[str]:
    """The shortest names whose last part contains the pattern's longest word, one for all layers: `enc*` --> `p/encoder`."""
    said = max(re.split(r"[\W\d_]+", glob), key=len).lower()
    found = sorted(
        {name for name in names if len(said) > 2 and said in (name_parts(name) or [name])[-1].lower()},
        key=lambda name: (len(name), name),
    )
    return list({re.sub(r"\d+", "*", name): name for name in reversed(found)}.values())[::-1]


def trees(names: Iterable[str]) -> str:
    """Names in a message, one for each tree: "`params` (28 leaves), `x`"."""
    counts, leaves = Counter((name_parts(name) or [name])[0] for name in names), set(names)
    shown = [
        f"`{root}`" if root in leaves else f"`{root}` ({counted(count, 'leaf', 'leaves')})" for root, count in counts.items()
    ]
    return ", ".join(shown[:SHOWN]) + (", ..." if len(shown) > SHOWN else "")


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names in a message: "`a`, `b`, ..."."""
    return ", ".join(f"`{name}`" for name in names[:most]) + (", ..." if len(names) > most else "")


TreeType: TypeAlias = tuple[Hashable, tuple[Hashable, ...]]
"""A key that is equal for trees of which one can succeed the other."""


@dataclass(frozen=True, slots=True)
class ArgumentTree:
    """An argument, or a part of the result: its tree structure, and the names and abstract values of its leaves."""

    structure: Hashable
    names: tuple[str, ...]
    avals: tuple[Shaped, ...]

    @property
    def type(self) -> TreeType:
        """The type of the tree: equal for trees of which one can succeed the other."""
        return self.structure, tuple((tuple(aval.shape), str(aval.dtype)) for aval in self.avals)


def successors(arguments: Sequence[ArgumentTree], results: Sequence[ArgumentTree]) -> Mapping[str, str]:
    """Map each argument leaf to the result leaf that takes its place in the next call.

    A result succeeds an argument if structure and avals are equal. Among several candidates, a result of the same name
    (`params` and `result/params`) comes first. The rest are paired in order if equally many results and arguments are left;
    otherwise they have no successors. A result never succeeds two arguments.

        step(params, opt, batch) -> (params, opt, loss)    -->    params/w: result/0/w, opt/m/w: result/1/m/w, ...
    """
    found, taken = dict[str, str](), set[str]()
    before, after = _by_type(arguments), _by_type(results)

    def pair(old: ArgumentTree, new: ArgumentTree) -> None:
        found.update(zip(old.names, new.names, strict=True))
        taken.update(new.names)

    for alike, olds in before.items():
        named = {_root(new): new for new in after.get(alike, ())}
        for old in olds:
            if (new := named.get(name_parts(old.names[0])[0])) is not None:
                pair(old, new)
    # Larger trees first: an array that has the shape of a parameter by chance does not take its result.
    for alike in sorted(before, key=lambda alike: -len(alike[1])):
        rest = [tree for tree in before[alike] if found.keys().isdisjoint(tree.names)]
        free = [tree for tree in after.get(alike, ()) if taken.isdisjoint(tree.names)]
        for old, new in zip(rest, free, strict=True) if len(rest) == len(free) else ():
            pair(old, new)
    return found


def _by_type(trees: Iterable[ArgumentTree]) -> dict[TreeType, list[ArgumentTree]]:
    """Groups trees that have leaves by type: those that can succeed one another."""
    found: dict[TreeType, list[ArgumentTree]] = {}
    for tree in trees:
        if tree.names:
            found.setdefault(tree.type, []).append(tree)
    return found


def _root(tree: ArgumentTree) -> str:
    """The key of a part of the result: `params` for `result/params/w`."""
    split = name_parts(tree.names[0])
    return split[1] if len(split) > 1 else ""


def path_parts(keys: Sequence[object]) -> list[str]:
    """The parts of a leaf's name, from its key path: `(DictKey("mlp"), SequenceKey(3))` --> `["mlp", "3"]`."""
    # DictKey and FlattenedIndexKey have a key, SequenceKey an idx, GetAttrKey a name; a class may register its own kind.
    return [escape(next((getattr(key, each) for each in ("key", "idx", "name") if hasattr(key, each)), key)) for key in keys]
