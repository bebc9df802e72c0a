"""Shows plans and their answers as HTML in a notebook. Each mesh axis has a colour.

plan   -->   train_step on data=4, model=2, its tactics and figures as `print(plan)` has them;
             and, folded, what is redundant, the conflicts, and the stops
"""

from collections.abc import Iterator

from ..plan.state import State
from ..views.colours import coloured_html, paragraph
from .summary import summary


def of_plan(plan: State) -> str:
    """The text of `print(plan)`, as HTML."""
    return "".join(_elements(plan))


def _elements(plan: State) -> Iterator[str]:
    found, axes = summary(plan), plan.coloured
    yield paragraph("\n".join([*found.tactics, *found.figures]), axes)
    for title, lines in found.sections:
        text = "\n".join(lines)
        yield f"<details><summary>{coloured_html(title, axes)}</summary>{paragraph(text, axes)}</details>"
    if found.notes:
        yield paragraph("\n".join(found.notes), axes)
