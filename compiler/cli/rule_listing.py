"""Lists definitions and rules, as they are written in their files."""

import fnmatch
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...dialects.definitions.registry import definitions
from ...dialects.ground.errors import Error, did_you_mean

ROOT = Path(__file__).parents[2]
FILES = (("dialects/definitions", "*.def"), ("rewrites/rules", "*.rules"))

# The names of an entry end at the operands of a definition, or at the colon of a rule.
_END = re.compile(r"[(:]")


def laws(patterns: Sequence[str] = (), defined: bool = False) -> dict[str, list[str]]:
    """Maps each file to its entries with a name that matches one of `patterns`; without patterns, to all entries.

    With `defined`, the ops added by `pt.define` are searched too; without patterns, only they are listed. Raises `Error` for
    a pattern that matches nothing, with the nearest names.
    """
    files = [file for folder, glob in FILES for file in sorted((ROOT / folder).glob(glob)) if patterns or not defined]
    entries = {str(file.relative_to(ROOT)): list(_entries(file.read_text())) for file in files}
    if defined:
        entries["pt.define"] = [textwrap.dedent(each.text).strip() for each in definitions.added.values()]
    known = [name for found in entries.values() for text in found for name in _names(text)]
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            raise Error(f"no definition or rule is called `{pattern}`", helps=did_you_mean(pattern, known, most=3))
    chosen = {
        file: [text for text in found if not patterns or any(fnmatch.filter(_names(text), p) for p in patterns)]
        for file, found in entries.items()
    }
    return {file: texts for file, texts in chosen.items() if texts}


def _entries(text: str) -> Iterator[str]:
    """Yields the text of each entry: its names begin at the left margin, and the lines that follow them are indented."""
    entry: list[str] = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if entry and not line[0].isspace() and _END.search("\n".join(entry)):
            yield "\n".join(entry)
            entry = []
        entry.append(line)
    if entry:
        yield "\n".join(entry)


def _names(entry: str) -> list[str]:
    """The names of an entry: `add, add_any(lhs, rhs) ...` --> add, add_any; `gather_slice: slice(...)` --> gather_slice."""
    return [name.strip() for name in _END.split(entry, maxsplit=1)[0].split(",")]
