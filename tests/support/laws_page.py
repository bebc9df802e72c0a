"""The page of the laws: each with its comment and a picture, whether it is proved, its conditions, and how often it fires."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

from steps_page import steps_section

from partita.dialects.definitions.registry import definitions
from partita.rewrites.proofs.laws import groups
from partita.rewrites.proofs.of_ranges.cases import RangeLaw
from partita.rewrites.proofs.of_ranges.ranges import every_range_law, range_verdict
from partita.rewrites.proofs.of_rules.laws import condition_verdicts, every_law, verdict
from partita.rewrites.proofs.of_tilings.tilings import table
from partita.rewrites.rules import rule_files
from partita.rewrites.rules.rule import Rule

HEAD = """# Laws

Every law of the `.rules` files, those of [ranges](#ranges-windows-and-factors), the [steps](#steps-of-redistribution) of a
redistribution, and the [tilings](#tilings) of definitions, each with what is known of it. `make prove` proves them with Z3, for
all sizes, coordinates and strides; see [Rules](design.md#rules). The tests of the proofs write this page, if they are run with
`--update`.

*Directly*: at an iteration and an index that stand for any. *By induction*: from each size of an axis to the next one. *By sums
of products*: both sides are sums over the same indices of the same products. A law that is not proved is tested on random
arrays, as all others are too.

A condition of the kind *meaning* is needed: without it, the law is refuted. *Lowering* says what can be emitted, and *order* in
which order a law is used: without these, the law is proved as well. `widening` is of the meaning, since a cast to integers cuts
fractions off. It also excludes casts that only round, of which these laws say nothing: their numbers are exact.

A picture has small arrays for the variables, the left side, the terms that the right side is made of, and the right side.
Iterations stand side by side, between `|`, where they differ. *In the demo* is how often a law fires while `partita demo` plans
and lowers its training step, where the same question is asked once.
"""

RANGES = """## Ranges, windows and factors

The laws of the [range algebra](notation.md) are Python. What is proved is the code itself: it is run over numbers that stand
for any, once for each way that its comparisons can go, and what it returns is compared, by the meaning of ranges, with what it
was given. A structure such as `a*n` is a range on a mesh axis `a` with blocks of `n`; its sizes, coordinates, strides and
offsets may be any. Extents are below 2**62.

"""


def told_by(module: str) -> dict[str, Any]:
    """What a module of this folder prints, in a process of its own: what it finds depends on nothing that ran before."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    run = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, check=True, env=env)
    return json.loads(run.stdout)


def comment(lines: list[str], line: int) -> str:
    """The comment directly above a line, as one text."""
    first = line
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return " ".join(each.lstrip("# ") for each in lines[first:line])


def rows(file: str, rules: list[Rule], pictures: dict[str, str], fired: dict[str, int]) -> Iterator[str]:
    """One section: a law after another, as it stands in its file."""
    lines = Path(rule_files.__file__).with_name(f"{file}.rules").read_text(encoding="utf-8").splitlines()
    yield f"\n## {file}.rules\n"
    for rule in rules:
        found, said = verdict(file, rule), comment(lines, rule.line - 1)
        yield f"### {rule.name}\n"
        yield f"```text\n{str(rule).partition(': ')[2]}\n```\n"
        yield f"{fill(said, 128)}\n" if said else ""
        yield f"```text\n{pictures[rule.name]}\n```\n" if rule.name in pictures else ""
        kinds = "".join(f" `{each.condition}`: {each.kind}." for each in condition_verdicts(rule))
        times = f" In the demo: {fired[rule.name]}." if rule.name in fired else ""
        yield fill(f"{found.state.capitalize()}: {found.how}.{kinds}{times}", 128) + "\n"


TILINGS = """
## Tilings

The tilings that are derived from `definitions.def`. *Statement*: an index of p·m values is placed on p devices, in blocks of m.
The operands are cut along the dims that the tiling names; each device runs the same definition on its part, with the changes
that the laws of `masks.rules` say; the results are joined along the dims that the tiling names, or folded by its monoid
(`{add}`). That is the whole result, at every index.

```text
out[i] = sum(k) x[i, k] * w[k], k placed    -->    on device c: sum(k) x[i, c·m + k] * w[c·m + k], pending {add}
```

It is proved for all sizes of all indices from 2 on, with blocks of one value and of more. Groups of indices have 0 to 2 of
them; dims that a parameter names are last, or first in reverse. Scalar functions may be any functions, and so may functions of
whole rows. What is known of a fold is that its monoid is associative and that its order does not matter. What is not covered,
padding, blocks dealt in turn and windows among it, is tested on random arrays.
"""


def tilings() -> Iterator[str]:
    """The section of tilings: a table for each section of the file of definitions."""
    yield TILINGS
    known, lines = "", [*enumerate(definitions.source.splitlines())]
    heads = [(at, line.strip("# -")) for at, line in lines if line.startswith("# ---")]
    # The first line that starts with a name, or continues such a line, has it at its head.
    words = [(at, re.findall(r"\w+", line.split("(")[0])) for at, line in lines if line[:1].isalpha()]
    places = {name: at for at, found in reversed(words) for name in found}
    for names, row in table():
        section = [head for at, head in heads if at <= places[row.definition.name]][-1]
        if section != known:
            yield f"### {section.partition(':')[0].capitalize()}\n"
            yield "| definitions | index | tiling | |\n|---|---|---|---|"
        known = section
        state = row.verdict.state + (f": {row.why}" if row.why else "")
        yield f"| {', '.join(f'`{name}`' for name in names)} | {row.index} | {row.tiling} | {state} |"


def page() -> str:
    """The page."""
    # Another process may be proving them in their order.
    for law in reversed([law for group in groups() for law in group.laws]):
        law.rows()
    files: dict[str, list[Rule]] = {}
    for file, rule in every_law():
        files.setdefault(file, []).append(rule)
    known = told_by("law_pictures"), told_by("demo_firings")
    text = HEAD + "\n".join(row for file, rules in files.items() for row in rows(file, rules, *known) if row)
    text += "\n\n" + RANGES + "\n".join(map(range_row, every_range_law())) + "\n".join(steps_section()) + "\n"
    text += re.sub(r"(?<=\|)\n(?=###)", "\n\n", "\n".join(tilings()))
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def range_row(law: RangeLaw) -> str:
    """A law of ranges: its sentence, its picture, for which structures it is proved, and how."""
    cases = [case for case in law.cases if case]
    named = f" For {'; '.join(f'`{case}`' for case in cases)}." if 0 < len(cases) <= 12 else ""
    said = fill(f"{law.sentence}{named}", 128, break_long_words=False, break_on_hyphens=False)
    found = range_verdict(law.name)
    known = "" if found.state == "proved" else f": {found.how}"
    return f"### {law.name}\n\n{said}\n\n```text\n{law.picture}\n```\n\n{found.state.capitalize()}{known}.\n"
