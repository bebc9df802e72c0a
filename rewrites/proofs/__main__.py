"""Proves each law, prints what is known of it, and fails if that is not what `laws.py` says.

python -m partita.rewrites.proofs [NAME ...]
"""

from __future__ import annotations

import sys
from time import perf_counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...dialects.ground.errors import Error
from .laws import NOT_PROVED, condition_verdicts, every_law, verdict
from .lemmas import lemmas
from .step_laws import NOT_PROVED as STEPS_NOT_PROVED, step_laws, step_verdict
from .ranges import NOT_PROVED as UNPROVED_RANGES, every_range_law, range_verdict

STYLE = {"proved": "green", "refuted": "red", "not proved": "yellow"}


def main(names: list[str]) -> int:
    """Prints a row a law. Returns the exit status."""
    console, start = Console(), perf_counter()
    wrong = [name for name, is_proved in lemmas().items() if not is_proved]
    table = Table("file", "law", "", "how, or why not", "ms", "conditions", title="Laws", title_justify="left")
    count = proved = 0
    for file, rule in every_law():
        if names and rule.name not in names:
            continue
        before = perf_counter()
        found, conditions = verdict(file, rule), condition_verdicts(rule)
        took = f"{(perf_counter() - before) * 1e3:.0f}"
        said = ", ".join(
            f"{each.condition}: {each.kind}{'' if each.is_right else ' [red]is wrong[/red]'}" for each in conditions
        )
        table.add_row(file, rule.name, f"[{STYLE[found.state]}]{found.state}[/]", found.how, took, said)
        wrong += [f"{rule.name}: {each.condition}" for each in conditions if not each.is_right]
        if found.state != ("not proved" if rule.name in NOT_PROVED else "proved"):
            wrong.append(f"{rule.name}: {found}")
        count, proved = count + 1, proved + (found.state == "proved")
    console.print(table)
    console.print(f"{proved} of {count} laws are proved, in {perf_counter() - start:.1f} s")
    wrong += print_steps(console, names)
    wrong += range_table(console, names)
    for each in wrong:
        console.print(f"not as stated: {each}", style="red", markup=False)
    return 1 if wrong else 0


def print_steps(console: Console, names: list[str]) -> list[str]:
    """Prints a row for each law of a step. Returns those that are not proved."""
    table, start = Table("step", "law", "", "how, or why not", "ms", title="Steps", title_justify="left"), perf_counter()
    wrong, laws = list[str](), [each for each in step_laws() if not names or each.kind in names]
    for law in laws:
        before = perf_counter()
        found = step_verdict(law)
        took = f"{(perf_counter() - before) * 1e3:.0f}"
        table.add_row(law.kind, str(law), f"[{STYLE[found.state]}]{found.state}[/]", found.how, took)
        wrong += [f"{law.kind}: {law}: {found}"] if found.state != "proved" else []
    for kind, why in STEPS_NOT_PROVED.items() if not names else ():
        table.add_row(kind, "", f"[{STYLE['not proved']}]not proved[/]", why, "")
    console.print(table)
    console.print(f"{len(laws) - len(wrong)} of {len(laws)} laws of steps are proved, in {perf_counter() - start:.1f} s")
    return wrong


def range_table(console: Console, names: list[str]) -> list[str]:
    """Prints a row a law of ranges. Returns which are not as stated."""
    start, wrong = perf_counter(), list[str]()
    table = Table("law", "text", "", "how, or why not", "ms", title="Laws of ranges", title_justify="left")
    laws = [each for each in every_range_law() if not names or each.name in names]
    for each in laws:
        before = perf_counter()
        found = range_verdict(each.name)
        took = f"{(perf_counter() - before) * 1e3:.0f}"
        table.add_row(each.name, Text(each.picture), f"[{STYLE[found.state]}]{found.state}[/]", Text(found.how), took)
        if found.state != ("not proved" if each.name in UNPROVED_RANGES else "proved"):
            wrong.append(f"{each.name}: {found}")
    proved = sum(range_verdict(each.name).state == "proved" for each in laws)
    console.print(table)
    console.print(f"{proved} of {len(laws)} laws of ranges are proved, in {perf_counter() - start:.1f} s")
    return wrong


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Error as error:
        sys.exit(str(error))
