"""The page of the laws: each with what the comment above it says, whether it is proved, and the kinds of its conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from partita.rewrites.proofs.laws import condition_verdicts, every_law, verdict
from partita.rewrites.proofs.range_cases import RangeLaw
from partita.rewrites.proofs.ranges import every_range_law, range_verdict
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

RANGES = """## Ranges, windows and factors

The laws of the [range algebra](notation.md) are Python. What is proved is the code itself: it is run over numbers that stand
for any, once for each way that its comparisons can go, and what it returns is compared, by the meaning of ranges, with what it
was given. A structure such as `a*n` is a range on a mesh axis `a` with blocks of `n`; its sizes, coordinates, strides and
offsets may be any. Extents are below 2**62.

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
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n\n" + RANGES + "\n".join(map(range_row, every_range_law()))


def range_row(law: RangeLaw) -> str:
    """A law of ranges: its sentence, its picture, for which structures it is proved, and how."""
    cases = [case for case in law.cases if case]
    named = f" For {'; '.join(f'`{case}`' for case in cases)}." if 0 < len(cases) <= 12 else ""
    said = fill(f"{law.sentence}{named}", 128, break_long_words=False, break_on_hyphens=False)
    found = range_verdict(law.name)
    known = "" if found.state == "proved" else f": {found.how}"
    return f"### {law.name}\n\n{said}\n\n```text\n{law.picture}\n```\n\n{found.state.capitalize()}{known}.\n"
