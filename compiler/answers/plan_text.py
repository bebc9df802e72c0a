"""The text of a plan file: the mesh, the tactics as statements, a record of what each does, and the final layouts.

mesh data=4, model=2

plan train_step {
  DataParallel(axis='data', inputs='batch/*')
    => batch/x, batch/y: 3 all_reduce
  tile params/w1.1 @model
    => params/w1: 1 all_reduce
  layout params/w1: f32[64, model*128]
}

A record says which values a tactic claims, and which collectives of the plan it causes. So it changes if a pattern matches
other values, or if the program around these values has changed.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from ...dialects.ground.amounts import at_most
from ...dialects.mesh import in_sets
from ...rewrites.program.program import ValueId
from ..cost.collectives import by_cause
from ..cost.counts import Counts
from ..inputs.tactic_calls import Call, with_names
from ..notation.tactic_statements import AXIS, statement
from ..plan.layouts import layouts
from ..plan.state import State
from ..views.listing import merged

MOST_VALUES = 4
"""The most values that a record names. Layers that are alike count as one."""


def text_of_plan(plan: State) -> str:
    """The text of a plan's file. Equal plans have equal texts."""
    lines = [f"mesh {in_sets(plan.source.mesh, ())}", "", f"plan {function_identifier(plan)} {{"]
    spans = [(at, at + 1) for at in range(plan.own, len(plan.actions))]
    for number, record in enumerate(records(plan, spans, plan.source.addresses.name), plan.own):
        lines += [f"  {statement(_as_saved(plan, plan.actions[number].text))}", *([f"    => {record}"] if record else [])]
    lines += [f"  layout {row}" for row in layout_rows(plan)]
    return "\n".join([*lines, "}", ""])


def _as_saved(plan: State, text: str) -> str:
    """A line of the trace, with names that no version reads otherwise."""
    if "#" not in text or text.startswith("#"):
        return text
    call = Call.read(text)
    saved = with_names(call, plan.source.addresses.saved)
    return str(saved) if saved != call else text


def function_identifier(plan: State) -> str:
    """The name of the plan's function, as an identifier of the notation."""
    name = re.sub(r"\W+", "_", plan.source.traced.name).strip("_")
    return name if AXIS.fullmatch(name) and name[0].isalpha() else f"plan_{name}".rstrip("_")


def records(plan: State, spans: Iterable[tuple[int, int]], name_of: Callable[[ValueId], str]) -> list[str]:
    """A record for each range of actions: what they do in the plan; empty if they claim and cause nothing."""
    caused = by_cause(plan)
    return [_record(plan, range(*span), caused, name_of) for span in spans]


def _record(plan: State, numbers: Sequence[int], caused: dict[int, Counts], name_of: Callable[[ValueId], str]) -> str:
    values = dict.fromkeys(name_of(value) for number in numbers for value in plan.actions[number].values)
    sent = " and ".join(caused[number + 1].text() for number in numbers if number + 1 in caused)
    if not values and not sent:
        return ""
    # The order of arguments is not the tactic's.
    rows = [row[0] for row in merged([name] for name in sorted(values))]
    return ": ".join(filter(None, (", ".join(at_most(MOST_VALUES, rows)), sent or "no collectives")))


def layout_rows(plan: State) -> list[str]:
    """The layouts of arguments and results, with one row for layers alike: `params/blocks/*/w1 x 4: f32[64, model*16]`."""
    return [f"{name}: {layout}" for name, layout in merged(layouts(plan).items())]
