"""The definitions of `definitions.def`, and those that users add: a mapping by the op's name."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path as File

from .parse import parse_definitions
from .syntax_tree import Definition


class Definitions(Mapping[str, Definition]):
    """The definitions of one file by op name, each parsed when it is first asked for, and definitions added at run time.

    Iterating gives only the file's definitions; `added` holds the others. An added definition never changes, because programs
    refer to ops by name. A definition that replaces another gets a new name, `attend` and then `attend.2`. `replaced` counts
    the replacements that a user asked for.
    """

    def __init__(self, file: File) -> None:
        self.file = file
        self._found: dict[str, Definition] = {}
        # A definition starts at the line's beginning, so the names are known without parsing. A program needs a few dozen.
        self.source = file.read_text(encoding="utf-8")
        heads = list(re.finditer(r"^(\w[\w,\s]*)\(", self.source, re.MULTILINE))
        ends = [*(head.start() for head in heads[1:]), len(self.source)]
        self._spans = {
            name.strip(): (head.start(), end) for head, end in zip(heads, ends, strict=True) for name in head[1].split(",")
        }
        self.added: dict[str, Definition] = {}
        self.replaced = 0
        self._taken: set[str] = set()

    def add(self, definition: Definition) -> Definition:
        """Adds a definition under a free name: its own, or its own followed by the next number. Returns it with that name.

        A name is not reused even after its definition is withdrawn, because tables about an op are keyed by its name.
        """
        name, number = definition.name, 1
        while name in self or name in self._taken:
            number += 1
            name = f"{definition.name}.{number}"
        self._taken.add(name)
        self.added[name] = definition = replace(definition, name=name)
        return definition

    def __getitem__(self, name: str) -> Definition:
        if name in self.added:
            return self.added[name]
        if name not in self._found:
            start, end = self._spans[name]
            line = self.source.count("\n", 0, start) + 1
            self._found |= parse_definitions(self.source[start:end], str(self.file), line)
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._spans or name in self.added

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


definitions = Definitions(File(__file__).with_name("definitions.def"))
