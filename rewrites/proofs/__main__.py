"""Proves each law, prints what is known of it, and fails if that is not what is stated.

python -m partita.rewrites.proofs [NAME ...]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter

from rich.console import Console

from ...dialects.ground.errors import Error
from .laws import Row, groups, proved_lemmas
from .table import printed


def main(names: list[str]) -> int:
    """Prints a row a law, of all or of those with one of the names. Returns the exit status."""
    console, start = Console(), perf_counter()
    wrong = [name for name, is_proved in proved_lemmas().items() if not is_proved]
    asked = [(group, law.name) for group in range(len(groups())) for law in groups()[group].laws if is_asked(law.name, names)]
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        found = dict(zip(asked, pool.map(proved, *zip(*asked, strict=True)), strict=True)) if asked else {}
    for number, group in enumerate(groups()):
        rows = [row for (of, _), every in found.items() if of == number for row in every]
        printed(console, group, rows)
        wrong += map(str, (row for row in rows if not row.is_as_stated))
    console.print(f"all of it took {perf_counter() - start:.1f} s")
    for each in wrong:
        console.print(f"not as stated: {each}", style="red", markup=False)
    return 1 if wrong else 0


def is_asked(law: str, names: list[str]) -> bool:
    """Whether a law has one of the names, or is one of a kind of steps or of definitions with such a name."""
    return not names or any(law == name or name in law.split(", ") or law.startswith(f"{name} ") for name in names)


def proved(group: int, name: str) -> Sequence[Row]:
    """Proves a law of a group."""
    return next(law for law in groups()[group].laws if law.name == name).rows()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Error as error:
        sys.exit(str(error))
