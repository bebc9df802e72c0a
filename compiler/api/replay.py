"""`pt.replay`: tactics from a trace or a plan file, applied to a function, and what has changed since they were saved.

plan.save("plan.partita")                              the mesh, the tactics, what each of them does, the layouts
pt.replay(train_step, "plan.partita", params, batch)   the same plan; or, if the program has changed, at which tactic and how
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast, overload

from ...dialects.ground.amounts import at_most
from ...dialects.ground.errors import Error, warn
from ...dialects.mesh import Mesh, in_sets
from ..answers.plan_text import layout_rows, records
from ..gc_pause import without_collector
from ..inputs.checks import mesh_given
from ..plan.program_changes import MOST_CHANGES, ProgramTypes, layouts_changed, types
from .notation import Notation, load
from .notation_plans import Block, Line
from .plan import Plan, R, plan
from .tactic_text import tactics_of


class ReplayWarning(UserWarning):
    """A tactic of a plan file now does something else than when the file was saved, because the program has changed."""


@overload
def replay(
    fn: Callable[..., R], file: str | Path, /, *args: object, static_argnames: Sequence[str] = (), **kwargs: object
) -> Plan[R]: ...


@overload
def replay(
    fn: Callable[..., R],
    mesh: Mesh,
    text: str | Path,
    /,
    *args: object,
    static_argnames: Sequence[str] = (),
    **kwargs: object,
) -> Plan[R]: ...


def replay(
    fn: Callable[..., R],
    mesh: Mesh | str | Path,
    /,
    *args: object,
    static_argnames: Sequence[str] = (),
    **kwargs: object,
) -> Plan[R]:
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
    with without_collector():
        saved = plans_of(cast("str | Path", text))
        over = saved.mesh if isinstance(mesh, str | Path) else mesh
        return with_plan_of(saved, start(mesh_given(over), *rest))


def with_plan_of(saved: Notation, plan: Plan) -> Plan:
    """The plan with the tactics of a plan file. Warns, and raises Error, as `replay` does."""
    made = Replayed.of(saved.block(function=plan.source.traced.name), plan)
    if (problem := made.problem(saved.file)) is not None:
        warn(ReplayWarning(str(problem)))
    return made.plan


def _is_file(given: object) -> bool:
    """Whether an argument names a plan file, and is not the text of a trace."""
    return isinstance(given, Path) or (isinstance(given, str) and given.endswith(".partita") and "\n" not in given)


def plans_of(file: str | Path) -> Notation:
    """Reads a plan file. Raises Error for one that has functions of its own."""
    if isinstance(file, str) and ("(" in file or "\n" in file):
        raise Error("`replay` needs a mesh for a trace", helps=["write pt.replay(fn, mesh, plan.trace, *args)"])
    saved = load(file)
    if saved.functions:
        helps = [f'its plans are for its functions: pt.load("{saved.file}").plan("{next(iter(saved.plans), "")}")']
        raise Error(f"`{saved.file}` has functions of its own", helps=helps)
    return saved


@dataclass(frozen=True, slots=True)
class Replayed:
    """A plan made by the lines of a block. `spans` has the range of actions that each line made, as two numbers."""

    block: Block
    plan: Plan
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, block: Block, plan: Plan) -> "Replayed":
        """Applies the block's lines to a plan.

        Raises Error for a refused tactic, with how the program differs from the file's.
        """
        spans = list[tuple[int, int]]()
        for line in block.lines:
            before = len(plan.actions)
            try:
                plan = plan.apply(*line.steps)
            except Error as error:
                notes, helps = [*error.notes, *_program_note(block, plan)], _cures(block, plan, error.title) or error.helps
                raise Error(error.title, location=error.location, label=error.label, notes=notes, helps=helps) from error
            spans.append((before, len(plan.actions)))
        return cls(block, plan, tuple(spans))

    def changed(self) -> list[tuple[Line, str]]:
        """The lines that do something else than their records say, each with what it does now."""
        if not any(line.record is not None for line in self.block.lines):
            return []
        addresses = self.plan.source.addresses
        found = [
            (line, now)
            for line, now in zip(self.block.lines, records(self.plan, self.spans, addresses.name), strict=True)
            if line.record is not None and line.record != now
        ]
        if not found:
            return []
        # A record may have the names of an earlier version.
        former = records(self.plan, self.spans, addresses.former_names.__getitem__)
        was = dict(zip(map(id, self.block.lines), former, strict=True))
        return [(line, now) for line, now in found if line.record != was[id(line)]]

    def problem(self, file: str) -> Error | None:
        """Describes what has changed since the file was saved; None if nothing has.

        On another mesh, tactics do something else and layouts differ in any case: there, only the program is compared.
        """
        same = self.block.mesh == in_sets(self.plan.source.mesh, ())
        lines = self.changed() if same else []
        # Equal rows on one mesh are those of one program.
        differs = not same or list(self.block.layouts) != layout_rows(self.plan)
        moved = layouts_changed(self.block.layouts, layout_rows(self.plan), self.plan.mesh) if same and differs else []
        program = _program_note(self.block, self.plan) if differs else []
        if not lines and not moved and not program:
            return None
        total = len(self.block.lines)
        which = f"{len(lines)} of its {total} tactics" if total > 1 else "its tactic"
        some = f"{which} {'do' if len(lines) > 1 else 'does'} something else"
        if program:
            title = f"the program has changed since `{file}` was saved" + (
                f": {some}" if lines else ", and its tactics do the same" if same else ""
            )
        else:
            title = f"`{file}` was saved from another program: {some if lines else 'it has other layouts now'}"
        changed = [
            f"{line.location}: `{line.said}`\nwas {line.record or 'nothing'}\n is {now or 'nothing'}" for line, now in lines
        ]
        notes = [*program, *at_most(MOST_CHANGES, changed, " tactics"), *_noted("layouts have changed", moved)]
        at = lines[0][0].location if lines else None
        return Error(title, location=at, notes=notes, helps=[f'to keep what it does now: plan.save("{file}")'])


def _noted(title: str, changes: Sequence[str]) -> list[str]:
    return ["\n".join([f"{title}:", *at_most(MOST_CHANGES, changes)])] if changes else []


def _program_note(block: Block, plan: Plan) -> list[str]:
    """How arguments and results differ from those of the file: in names, numbers of layers, or types."""
    return _noted("its arguments and results are not the same", _types(block, plan).differences()) if block.layouts else []


def _types(block: Block, plan: Plan) -> ProgramTypes:
    return types(block.layouts, block.mesh or plan.mesh, layout_rows(plan), plan.mesh)


def _cures(block: Block, plan: Plan, title: str) -> list[str]:
    """For an error about an unknown name: what to write instead, if the file's program had that name."""
    named = re.search(r"^no \w+ is named `(.+)`$", title) if block.layouts else None
    return _types(block, plan).cures(named[1]) if named else []
