"""The page of a plan: its data, put into the built page."""

from pathlib import Path

from ..gc_pause import without_collector
from ..page.page import filled, written
from ..plan.state import State
from .data import data


def write(plan: State, path: str | Path) -> None:
    """Writes the page of a plan to a file. Raises Error for a path that cannot be written."""
    written(path, lambda: html(plan), "plan")


def html(plan: State) -> str:
    """The HTML text of a plan's page. Equal plans give equal texts."""
    with without_collector():
        return filled(f"{plan.source.traced.name} on {plan.mesh.whole()}", data(plan))
