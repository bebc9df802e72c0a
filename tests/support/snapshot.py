"""A snapshot of all that Partita says, to compare between two commits: a text file for each plan and each wrong program.

From the root of a checkout, which is the one whose snapshot is written:

    python tests/support/snapshot.py write FOLDER              all: the examples, 500 generated plans, the wrong programs
    python tests/support/snapshot.py write FOLDER --only generated --number 50
    python tests/support/snapshot.py compare OTHER FOLDER      two snapshots; exits with 1 if they differ
    python tests/support/snapshot.py compare OTHER             the snapshot of this checkout, written to a temporary folder

With `--names-aside`, values are told apart by their numbers in the program and not by their names.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from root import ROOT
from snapshot_files import KINDS, Comparison

SETTINGS = {
    "JAX_NUM_CPU_DEVICES": "8",
    "JAX_PLATFORMS": "cpu",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".jax_cache"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""The set-up of the tests, which JAX reads when it is imported; a folder for its cache may be given from outside."""

only = click.option("--only", type=click.Choice(KINDS), help="Programs of this kind alone.")
number = click.option("--number", type=int, metavar="N", help="No more than N programs of each kind.")
part = click.option("--part", default="0/1", metavar="K/N", help="Part K of N, counted from 0: for several processes.")


@click.group()
def main() -> None:
    """A snapshot of all that Partita says of many plans, and its comparison with another one."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@only
@number
@part
def write(folder: Path, only: str | None, number: int | None, part: str) -> None:
    """Write the snapshot of this checkout into FOLDER."""
    written(folder, [only] if only else KINDS, number, part)


@main.command()
@click.argument("before", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("after", type=click.Path(path_type=Path, file_okay=False, exists=True), required=False)
@only
@number
@click.option("--lines", default=20, show_default=True, help="So many lines of each difference.")
@click.option("--names-aside", is_flag=True, help="Compare values by their numbers in the program.")
@click.option("--verbose", is_flag=True, help="Also list the files that are equal.")
def compare(
    before: Path, after: Path | None, only: str | None, number: int | None, lines: int, names_aside: bool, verbose: bool
) -> None:
    """Compare the snapshot BEFORE with AFTER, or with that of this checkout."""
    with tempfile.TemporaryDirectory() as made:
        if after is None:
            after = Path(made)
            written(after, [only] if only else KINDS, number)
        # A part of a snapshot is compared with the files that it has.
        partly = only is not None or number is not None
        found = Comparison(before, after, [only] if only else KINDS, partly, names_aside, lines)
        sys.exit(found.report(verbose))


def written(folder: Path, kinds: Sequence[str], number: int | None, part: str = "0/1") -> None:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    # JAX must not be imported before.
    from snapshot_texts import write_all

    at, of = map(int, part.split("/"))
    write_all(folder, kinds, number, at, of)


if __name__ == "__main__":
    main()
