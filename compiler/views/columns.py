"""Fits the columns of a table to a screen without breaking words: cells wrap, long names are shortened, columns are left out.

params/layers/wq                            all_gather   8   mlp.py:12
decoder/block/mlp/recomputed/dot_general#0  all_reduce   4   mlp.py:14     -->     params/layers/wq       all_gather  8
                                                                                   decoder…/dot_general#0 all_reduce  4
"""

import re
from collections.abc import Iterable, Mapping, Sequence

GAP, NARROW = 3, 2
"""The blanks between two columns: usually, and where there is not enough room."""
SHORT = 18
"""A longer name may be shortened to this many characters before a column is left out."""
SHORTEST = 8
"""The fewest characters to which a name is shortened."""
MOST_LINES = 2
"""The most lines of a cell."""

# A name and how many values it stands for stay together.
_WORD = re.compile(r"\S+(?: x [\d,]+$)?")
_TIMES = re.compile(r" x [\d,]+$")


def fitted(
    columns: Sequence[str], rows: Sequence[Sequence[str]], room: int, spare: Sequence[str], firm: set[int]
) -> Mapping[int, int]:
    """Chooses the columns to show, by number, and the width of each.

    Of the `spare` ones, those that do not fit are left out: the empty ones, then the first ones. A `firm` one keeps its words.
    """
    every = range(len(columns))
    natural = [max(len(text) for text in (columns[at], *(row[at] for row in rows))) for at in every]
    full = [at for at in every if columns[at] not in spare or any(row[at] for row in rows)]
    for shown in (every, full):
        if _left(room, [natural[at] for at in shown], GAP) >= 0:
            return {at: natural[at] for at in shown}
    words = [max((_longest(row[at]) for row in rows), default=0) for at in every]
    least = [max(_longest(columns[at]), words[at] if at in firm else min(words[at], SHORT)) for at in every]
    for at in (columns.index(name) for name in spare if name in columns):
        if at in full and _left(room, [least[each] for each in full]) < 0:
            full.remove(at)
    return _shared({at: least[at] for at in full}, natural, room, firm)


def _left(room: int, widths: Iterable[int], gap: int = NARROW) -> int:
    """The width that columns of these widths leave of a screen."""
    return room + gap - sum(width + gap for width in widths)


def _shared(widths: dict[int, int], natural: Sequence[int], room: int, firm: set[int]) -> Mapping[int, int]:
    """Shares the remaining room among the columns, those that lack least first.

    If there is too little room, names are shortened.
    """
    while _left(room, widths.values()) < 0:
        longest = max((at for at in widths if at not in firm), key=lambda at: widths[at], default=-1)
        if longest < 0 or widths[longest] <= SHORTEST:
            break
        widths[longest] -= 1
    lacking = sorted(widths, key=lambda at: natural[at] - widths[at])
    for number, at in enumerate(lacking):
        share = max(_left(room, widths.values()), 0) // (len(lacking) - number)
        widths[at] += min(natural[at] - widths[at], share)
    return widths


def _longest(text: str) -> int:
    return max(map(len, _WORD.findall(text)), default=0)


def wrapped(text: str, width: int, most: int = MOST_LINES) -> str:
    """Wraps a cell to lines of this width. The last line ends in `…` if more would follow. Longer words are shortened."""
    if max(map(len, text.split("\n"))) <= width:
        return text
    lines: list[str] = []
    for word in (shortened(word, width) for word in _WORD.findall(text)):
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    if len(lines) > most:
        last = lines[most - 1]
        while len(last) > width - 2 and " " in last:
            last = last.rpartition(" ")[0]
        lines[most - 1 :] = [f"{shortened(last, width - 2)} …"]
    return "\n".join(lines)


def shortened(name: str, width: int) -> str:
    """Shortens a name by cutting out its middle; more of its end is kept than of its start. A count behind it is kept.

    decoder/block/mlp/recomputed/dot_general#* x 12     -->     decode…_general#* x 12
    """
    if len(name) <= width:
        return name
    times = found[0] if (found := _TIMES.search(name)) is not None and len(found[0]) < width - SHORTEST else ""
    room = max(width - len(times) - 1, 1)
    end = room * 2 // 3
    return f"{name[: room - end]}…{name[len(name) - len(times) - end : len(name) - len(times)]}{times}"
