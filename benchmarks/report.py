"""The results of a benchmark: tables that print, and that are written as JSON and Markdown."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from partita.compiler.jax_private import RELEASE

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """The figures of one question, with the machine that they were measured on."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def show(self) -> None:
        grid = Grid(*self.columns, title=self.title, title_justify="left")
        for row in self.rows:
            grid.add_row(*map(_text, row))
        console = Console()
        console.print(grid)
        for note in self.notes:
            console.print(note, style="dim", highlight=False)

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line([_text(cell) for cell in row]) for row in self.rows]
        return "\n".join([*lines, "", *(f"* {note}" for note in self.notes), ""])

    def write(self) -> None:
        """Writes `results/NAME.json` and `results/NAME.md`."""
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=2) + "\n")
        (RESULTS / f"{self.name}.md").write_text(self.markdown())

    def write_on_page(self) -> None:
        """Writes the rows in `docs/benchmarks.md`, between the comments that name this table."""
        start, end = f"<!-- {self.name}: written by its command -->\n", f"<!-- end of {self.name} -->\n"
        before, _, rest = PAGE.read_text().partition(start)
        _, _, after = rest.partition(end)
        shown = "".join(line + "\n" for line in self.markdown().splitlines() if line.startswith("|"))
        PAGE.write_text(f"{before}{start}{shown}{end}{after}")


def machine() -> str:
    """The machine that the figures were measured on, and its load: a note for a table of times."""
    return f"{os.cpu_count()} cores, jax {RELEASE}, load average {os.getloadavg()[1]:.1f} when it ended."


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case float():
            return f"{cell:.3g}" if abs(cell) < 100 else f"{cell:,.0f}"
        case int():
            return f"{cell:,}"
        case _:
            return cell
