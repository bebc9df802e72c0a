"""The files of two snapshots, compared.

A file has sections, `== title`, in order. The last one, `== names`, says how the program's values are called, by number.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from pathlib import Path

KINDS = ("examples", "generated", "errors")
"""The folders of a snapshot."""
NAMES = "== names\n"


@dataclass(frozen=True)
class Comparison:
    """Two snapshots; `partly` if the second one has only some of the programs."""

    before: Path
    after: Path
    kinds: Sequence[str]
    partly: bool
    names_aside: bool
    lines: int

    @cached_property
    def files(self) -> list[str]:
        """The files of either snapshot, or of the second one alone."""
        folders = [self.after] if self.partly else [self.before, self.after]
        return sorted(
            {
                str(file.relative_to(folder))
                for folder in folders
                for kind in self.kinds
                for file in folder.glob(f"{kind}/*.txt")
            }
        )

    def difference(self, file: str) -> list[str]:
        """The lines of a unified diff; none if the texts are equal."""
        texts = [self.read(folder / file) for folder in (self.before, self.after)]
        if texts[0] == texts[1]:
            return []
        one, other = (text.splitlines() for text in texts)
        return list(unified_diff(one, other, "before", "after", n=1, lineterm=""))

    def read(self, path: Path) -> str:
        text = path.read_text() if path.exists() else ""
        return without_names(text) if self.names_aside else text

    def report(self, verbose: bool) -> int:
        """Prints what differs, and how many files do; 1 if any does."""
        differing = 0
        for file in self.files:
            if found := self.difference(file):
                differing += 1
                print(
                    f"DIFFERS {file}: {sum(line[0] in '+-' for line in found) - 2} lines, in {', '.join(self.sections(file))}"
                )
                print(*(f"    {line}" for line in found[: self.lines]), sep="\n")
            elif verbose:
                print(f"equal   {file}")
        print(f"{len(self.files) - differing} of {len(self.files)} files are equal, {differing} differ")
        return int(differing > 0 or not self.files)

    def sections(self, file: str) -> list[str]:
        """The titles of the sections that differ."""
        one, other = (sections(self.read(folder / file)) for folder in (self.before, self.after))
        return [title for title in {**one, **other} if one.get(title) != other.get(title)]


def sections(text: str) -> dict[str, str]:
    _, *parts = re.split(r"^== (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def without_names(text: str) -> str:
    """The text with `%3` for the name of value 3, and without what depends on the length of a name: how tables are spaced."""
    said, _, table = text.partition(NAMES)
    pairs = [line.partition(" ")[::2] for line in table.splitlines()]
    numbers = {name: f"%{value}" for value, name in pairs}
    return "\n".join(spaced(line) for line in replaced(said, numbers).splitlines())


def replaced(text: str, numbers: dict[str, str]) -> str:
    """The text with a number for each name, also for one in brackets, before a full stop, or with a dim: `w1.0`."""

    def number(found: re.Match[str]) -> str:
        word = found[0]
        bare = word.strip("().,")
        name = next((each for each in (word, bare, bare.rpartition(".")[0]) if each in numbers), None)
        return word if name is None else word.replace(name, numbers[name], 1)

    return re.sub(r"[^\s`'\":;=]+", number, text)


def spaced(line: str) -> str:
    return re.sub(r" {2,}|─+", " ", line)
