"""The tutorial runs, and its outputs are what its cells show."""

from collections.abc import Callable
from pathlib import Path

from notebooks import renewed
from root import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


def test_the_tutorial_shows_what_its_cells_do(golden: Callable[[Path, str], None]) -> None:
    golden(TUTORIAL, renewed(TUTORIAL))
