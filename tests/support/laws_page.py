"""The page of the laws: each with what the comment above it says, whether it is proved, and the kinds of its conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from steps_page import steps_section

from partita.rewrites.proofs.laws import condition_verdicts, every_law, verdict
from partita.rewrites.rules import rule_files
from partita.rewrites.rules.rule import Rule

HEAD = """# Laws

Every law of the `.rules` files, with what is known of it. `make prove` proves the laws with Z3, for all sizes, coordinates and
strides; see [Rules](design.md#rules). The tests of the proofs write this page, if they are run with `--update`.

*Directly*: at an iteration and an index that stand for any. *By induction*: from each size of an axis to the next one. *By sums
of products*: both sides are sums over the same indices of the same products. A law that is not proved is tested on random
arrays, as all others are too.

A condition of the kind *meaning* is needed: without it, the law is refuted. *Lowering* says what can be emitted, and *order* in
which order a law is used: without these, the law is proved as well.
"""


def comment(lines: list[str], line: int) -> str:
    """The comment directly above a line, as one text."""
    first = line
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return " ".join(each.lstrip("# ") for each in lines[first:line])


def rows(file: str, rules: list[Rule]) -> Iterator[str]:
    """One section: a law after another, as it stands in its file."""
    lines = Path(rule_files.__file__).with_name(f"{file}.rules").read_text(encoding="utf-8").splitlines()
    yield f"\n## {file}.rules\n"
    for rule in rules:
        found, said = verdict(file, rule), comment(lines, rule.line - 1)
        yield f"### {rule.name}\n"
        yield f"```text\n{str(rule).partition(': ')[2]}\n```\n"
        yield f"{fill(said, 128)}\n" if said else ""
        kinds = "".join(f" `{each.condition}`: {each.kind}." for each in condition_verdicts(rule))
        yield fill(f"{found.state.capitalize()}: {found.how}.{kinds}", 128) + "\n"


def page() -> str:
    """The page."""
    files: dict[str, list[Rule]] = {}
    for file, rule in every_law():
        files.setdefault(file, []).append(rule)
    text = HEAD + "\n".join(row for file, rules in files.items() for row in rows(file, rules) if row)
    text += "\n".join(steps_section())
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"
