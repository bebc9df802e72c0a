"""The base of a plan's answers: they print as text, as rich tables and as HTML, and never fill more than a screen.

view parts: lines of text, and grids of rows   -->   repr and str: text;  rich.print: tables;  a notebook: HTML
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Self, TypeAlias

from .colours import coloured_html, paragraph
from .columns import GAP, fitted, wrapped

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

WIDTH = 160
"""The most characters in a line of text. A longer line is continued below."""

Cell: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: rows under named columns. Numbers have separators, and are aligned to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    spare: Sequence[str] = ()
    """The columns that may be left out on a narrow screen, the first ones first."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield self.rich(options.max_width)

    def rich(self, width: int) -> RenderableType:
        """Makes a rich table for a screen of this width."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        rows = [list(map(_text, row)) for row in self.rows]
        numbers = {at for row in self.rows for at, cell in enumerate(row) if isinstance(cell, int)}
        widths = fitted(self.columns, rows, width, self.spare, numbers)
        is_narrow = sum(widths.values()) + GAP * (len(widths) - 1) > width
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0 if is_narrow else 1))
        for at, room in widths.items():
            head = wrapped(self.columns[at], room, most=len(self.columns[at]))
            made.add_column(head, justify="right" if at in numbers else "left", width=room, no_wrap=at in numbers)
        for row in rows:
            # A plain text, since the brackets of a layout are not markup.
            made.add_row(*(Text(wrapped(row[at], room)) for at, room in widths.items()))
        return made

    def html(self, axes: tuple[str, ...] = ()) -> str:
        """Makes an HTML table, with each of these axes in its colour."""
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)

        def td(cell: Cell) -> str:
            side = "right" if isinstance(cell, int) else "left"
            return f'<td style="text-align: {side}">{coloured_html(_text(cell), axes)}</td>'

        body = "".join(f"<tr>{''.join(map(td, row))}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


Part: TypeAlias = str | Grid


class View:
    """Base of objects that print themselves. A subclass returns the parts to print from `parts`, at most a screen."""

    axes: tuple[str, ...] = ()
    """The axes of the plan's mesh, for their colours in a notebook."""

    def on(self, axes: tuple[str, ...]) -> Self:
        """Sets the mesh axes whose names are coloured, and returns the view."""
        # A view may be a frozen dataclass. Its axes are no part of what it is.
        object.__setattr__(self, "axes", axes)
        return self

    def parts(self) -> Sequence[Part]:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = WIDTH) -> str:
        """Prints the view as plain text, with tables no wider than `width`."""
        parts = self.parts()
        lines = [part for part in parts if isinstance(part, str)]
        return "\n".join(lines) if len(lines) == len(parts) else rendered(_grouped(parts), width)

    def __repr__(self) -> str:
        return str(self)

    def __rich__(self) -> RenderableType:
        return _grouped(self.parts())

    def _repr_html_(self) -> str:
        made = ""
        # Lines that follow each other are one text.
        for grids, group in groupby(self.parts(), lambda part: isinstance(part, Grid)):
            some = list(group)
            made += "".join(each.html(self.axes) for each in some if isinstance(each, Grid))
            made += "" if grids else paragraph("\n".join(map(str, some)), self.axes)
        return made


def rendered(what: RenderableType, width: int = WIDTH) -> str:
    """Renders something for rich as plain text, without blanks at the ends of lines."""
    from rich.console import Console

    console = Console(width=width, color_system=None, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(what)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def _grouped(parts: Sequence[Part]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(*(Text(part) if isinstance(part, str) else part for part in parts))


def _text(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int) else cell
