"""`pt.replay`: tactics from a trace or a plan file, applied to a function, and what has changed since they were saved.

plan.save("plan.partita")                              the mesh, the tactics, what each of them does, the layouts
pt.replay(train_step, "plan.partita", params, batch)   the same plan; or, if the program has changed, at which tactic and how
"""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast, overload

from ...dialects.dtypes import short
from ...dialects.errors import Error
from ...dialects.layouts import parse_array
from ...dialects.mesh import Mesh
from ..inputs.checks import mesh_given
from ..plan.prefixes import start_mesh
from ..plan.saved import layout_rows, records
from .notation import Notation, load
from .notation_plans import Block, Line
from .plan import Plan, plan
from .replay import tactics_of

MOST = 6
"""The most changes of one kind that a report shows."""


class ReplayWarning(UserWarning):
    """A tactic of a plan file does something else than when the file was saved, because the program has changed."""


@overload
def replay(
    fn: Callable[..., object], file: str | Path, /, *args: object, static_argnames: Sequence[str] = (), **kwargs: object
) -> Plan: ...


@overload
def replay(
    fn: Callable[..., object],
    mesh: Mesh,
    text: str | Path,
    /,
    *args: object,
    static_argnames: Sequence[str] = (),
    **kwargs: object,
) -> Plan: ...


def replay(
    fn: Callable[..., object],
    mesh: Mesh | str | Path,
    /,
    *args: object,
    static_argnames: Sequence[str] = (),
    **kwargs: object,
) -> Plan:
    """Plan `fn` with the tactics of a plan file, on its mesh; or, on a mesh that you give, with those of a file or a trace.

    A trace is the text of `plan.trace`; blank lines and lines that begin with `#` are skipped. A file ends in `.partita`.

    Warns (`pt.ReplayWarning`) if a file was saved from a program on which its tactics did something else, and says at which
    tactic, what, and how the program has changed; on another mesh than the file's, if arguments or results are not the same.
    Raises Error for a tactic that is refused, at its line.

        replay(train_step, "plan.partita", params, batch)
        replay(train_step, pt.Mesh(data=8), "plan.partita", params, batch)      the same tactics on another mesh
        replay(train_step, mesh, plan.trace, params, batch)
    """
    text, rest = (mesh, args) if isinstance(mesh, str | Path) else ((args or ("",))[0], args[1:])
    start = partial(plan, fn, static_argnames=static_argnames, **kwargs)
    if not isinstance(mesh, str | Path) and not _is_file(text):
        return start(mesh_given(mesh), *rest).apply(*tactics_of(cast(str, text)))
    saved = _plans_of(cast("str | Path", text))
    block = saved.block(function=getattr(fn, "__name__", ""))
    over = saved.mesh if isinstance(mesh, str | Path) else mesh
    made = Replayed.of(block, start(mesh_given(over), *rest))
    if problem := made.problem(saved.file):
        warnings.warn(str(problem), ReplayWarning, stacklevel=2)
    return made.plan


def _is_file(given: object) -> bool:
    """Whether it names a plan file, and is not the text of a trace."""
    return isinstance(given, Path) or (isinstance(given, str) and given.endswith(".partita") and "\n" not in given)


def _plans_of(file: str | Path) -> Notation:
    if isinstance(file, str) and ("(" in file or "\n" in file):
        raise Error("`replay` needs a mesh for a trace", helps=["write pt.replay(fn, mesh, plan.trace, *args)"])
    saved = load(file)
    if saved.functions:
        helps = [f'its plans are for its functions: pt.load("{saved.file}").plan("{next(iter(saved.plans), "")}")']
        raise Error(f"`{saved.file}` has functions of its own", helps=helps)
    return saved


@dataclass(frozen=True, slots=True)
class Replayed:
    """A plan made by the lines of a block; `spans` are the actions, from one number to another, of each line."""

    block: Block
    plan: Plan
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, block: Block, plan: Plan) -> "Replayed":
        """Raises Error for a tactic that is refused, with what is different about the program."""
        spans = list[tuple[int, int]]()
        for line in block.lines:
            before = len(plan.actions)
            try:
                plan = plan.apply(*line.steps)
            except Error as error:
                notes, helps = [*error.notes, *_program_note(block, plan)], _renamed(block, plan, error.title) or error.helps
                raise Error(error.title, location=error.location, label=error.label, notes=notes, helps=helps) from error
            spans.append((before, len(plan.actions)))
        return cls(block, plan, tuple(spans))

    def changed(self) -> list[tuple[Line, str]]:
        """The lines that do something else than their records say, each with what it does."""
        if not any(line.record is not None for line in self.block.lines):
            return []
        found = zip(self.block.lines, records(self.plan, self.spans), strict=True)
        return [(line, now) for line, now in found if line.record is not None and line.record != now]

    def problem(self, file: str) -> Error | None:
        """What is not as it was when the file was saved; None if all of it is.

        On another mesh, tactics do something else and layouts differ in any case: there, only the program is compared.
        """
        same = self.block.mesh == start_mesh(self.plan)
        lines, moved = (self.changed(), _layouts_changed(self.block, self.plan)) if same else ([], [])
        program = _program_note(self.block, self.plan)
        if not lines and not moved and not program:
            return None
        some = f"{len(lines)} of its {len(self.block.lines)} tactics {'do' if len(lines) > 1 else 'does'} something else"
        if program:
            title = f"the program has changed since `{file}` was saved" + (
                f": {some}" if lines else ", and its tactics do the same" if same else ""
            )
        else:
            title = f"`{file}` was saved from another program: {some if lines else 'it has other layouts now'}"
        notes = [
            *program,
            *(f"{line.location}: `{line.said}`\n{_change(line.record or '', now)}" for line, now in lines[:MOST]),
        ]
        notes += [f"and {len(lines) - MOST} more tactics"] if len(lines) > MOST else []
        notes += _noted("layouts have changed", moved)
        at = lines[0][0].location if lines else None
        return Error(title, location=at, notes=notes, helps=[f'to keep what it does now: plan.save("{file}")'])


def _change(was: str, now: str) -> str:
    return f"was {was or 'nothing'}\n is {now or 'nothing'}"


def _noted(title: str, changes: Sequence[str]) -> list[str]:
    more = [f"and {len(changes) - MOST} more"] if len(changes) > MOST else []
    return ["\n".join([f"{title}:", *changes[:MOST], *more])] if changes else []


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the layouts of a file: alike values, how many there are, and their layout."""

    name: str
    count: int
    layout: str

    @classmethod
    def read(cls, text: str) -> "Row":
        name, _, layout = text.rpartition(": ")
        counted = re.fullmatch(r"(.*) x (\d+)", name)
        return cls(counted[1], int(counted[2]), layout) if counted else cls(name, 1, layout)

    def on(self, mesh: Mesh) -> "Row":
        """With its global type instead of the layout, if that can be read on this mesh."""
        try:
            dtype, layout = parse_array(self.layout)
            shape = layout.global_shape(mesh)
        except Error:
            return self
        return replace(self, layout=f"{short(dtype)}{[*shape]}")

    @property
    def counted(self) -> str:
        return f"`{self.name}` x {self.count}" if self.count > 1 else f"`{self.name}`"


def _program_note(block: Block, plan: Plan) -> list[str]:
    """How arguments and results differ from those of the file: names, how many layers there are, types."""
    return _noted("its arguments and results are not the same", _differences(*_types(block, plan))) if block.layouts else []


def _types(block: Block, plan: Plan) -> tuple[dict[str, Row], dict[str, Row]]:
    """The global types of the file, each layout read on the file's own mesh, and those of the plan."""
    was = [row.on(block.mesh or plan.mesh) for row in map(Row.read, block.layouts)]
    return _joined(was), _joined([row.on(plan.mesh) for row in map(Row.read, layout_rows(plan))])


def _renamed(block: Block, plan: Plan, title: str) -> list[str]:
    """The new values of the type of one that is gone, if an error says that this one is not found."""
    was, now = _types(block, plan)
    missing = next((row for name, row in was.items() if name not in now and f"`{name}`" in title), None)
    new = [row.name for name, row in now.items() if missing and name not in was and row.layout == missing.layout]
    return [f"did you mean {' or '.join(f'`{name}`' for name in new[:MOST])}?"] if new else []


def _layouts_changed(block: Block, plan: Plan) -> list[str]:
    """The values of the same type that have another layout."""
    if not block.layouts:
        return []
    was, now = (list(map(Row.read, rows)) for rows in (block.layouts, layout_rows(plan)))
    return [
        f"`{old.name}` was {old.layout}, is {new.layout}"
        for old in was
        for new in now
        if old.name == new.name and old.layout != new.layout and old.on(plan.mesh).layout == new.on(plan.mesh).layout
    ]


def _joined(rows: Sequence[Row]) -> dict[str, Row]:
    """One row for values of one name, in whatever layouts they are."""
    found = dict[str, Row]()
    for row in rows:
        found[row.name] = replace(row, count=row.count + (found[row.name].count if row.name in found else 0))
    return found


def _differences(was: dict[str, Row], now: dict[str, Row]) -> list[str]:
    gone = [row for name, row in was.items() if name not in now]
    new = [row for name, row in now.items() if name not in was]
    found = [f"{row.counted} is gone" for row in gone]
    for row in new:
        alike = [each for each in gone if (each.layout, each.count) == (row.layout, row.count)]
        found.append(f"{row.counted} is new" + (f": was it {alike[0].counted}?" if len(alike) == 1 else ""))
    for name, row in was.items():
        other = now.get(name, row)
        found += [f"{row.counted}: there are {other.count} now"] if other.count != row.count else []
        found += [f"{row.counted} was {row.layout}, is {other.layout}"] if other.layout != row.layout else []
    return found
