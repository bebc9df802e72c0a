"""Asks a plan everything that a plan can be asked.

The questions are those of `Plan` itself: its properties, and its methods but for those that make another plan. What they
answer is asked in turn: its texts, its items, its own properties and methods. So a question that is added is asked too. A
parameter without a default takes what `GIVEN` has for its name; one that is missing there is a question that nobody asks.

plan   -->   plan.blocked   -->   str(stop), stop.cure   -->   ...
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import inspect
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import partita as pt
from partita.compiler.advice.open_conflicts import open_keys
from partita.compiler.advice.open_stops import is_open
from partita.compiler.advice.tactic_edits import Change
from partita.compiler.answers.expect import QUANTITIES
from partita.compiler.api.plan import Plan
from partita.compiler.api.tactic_text import ACTIONS
from partita.compiler.api.tactics.combinators import Composable
from partita.compiler.cost.costs import cost
from partita.compiler.cost.counts import COLLECTIVES
from partita.compiler.cost.memory import Memory
from partita.compiler.graph.graph import Graph
from partita.compiler.graph.run import CompiledGraph
from partita.compiler.plan.history import without_tactics
from partita.compiler.plan.state import Action, State
from partita.compiler.run.partitioned import Partitioned
from partita.compiler.shell.command_table import TABLE
from partita.compiler.shell.completion import completions
from partita.compiler.shell.lowered_forms import FORMS
from partita.compiler.shell.run_line import do
from partita.compiler.shell.session import Session
from partita.compiler.shell.typed_line import Typed
from partita.compiler.trace.trace import Traced
from partita.compiler.views.view import View
from partita.rewrites.lower.to_flow import GRANULARITIES

CHANGES = (*ACTIONS, "apply", "place", "resolve")
"""The methods that make another plan."""
NOT_ASKED = "add", "on"
"""The methods of answers that are no questions."""
RUNS = "stablehlo", "run", "compile", "jit"
"""Those that compile for devices, as all do that take the arguments of the function: asked of few plans."""
REFUSES = "notation", "parse"
"""Those that an Error may answer: there are ops that the notation cannot express."""
INSIDE = (State, Traced, Action, Change, Composable, Partitioned, CompiledGraph, str, int, float, type(None))
"""What is not asked in turn: plans and tactics, the program, and what runs."""
MOST_WORDS = 6
"""The most words that complete a command and are tried."""


@dataclass(frozen=True)
class Asked:
    """A plan, the function and the arguments that it is of, and a folder for the files that it writes."""

    plan: Plan
    function: Callable[..., Any]
    args: Sequence[Any]
    folder: Path
    runs: bool = False
    """Whether to compile for devices too."""
    seen: set[int] = field(default_factory=set[int])
    kept: list[object] = field(default_factory=list[object])
    """What has been asked, so that no other object takes its `id`."""

    @cached_property
    def given(self) -> Mapping[str, Callable[[object], Iterable[object]]]:
        """What questions are asked about, by the name of the parameter: of the object that is asked."""
        plan = self.plan

        def everything(_: object) -> Iterator[object]:
            yield from ("*", *plan.source.addresses.names.values(), *plan.collectives(), *plan.conflicts, *plan.blocked)

        return {
            "what": everything,
            "before": lambda _: (plan, without_tactics(plan)),
            "file": lambda _: [self.folder / "plan.partita"],
            "path": lambda _: [self.folder / "plan.html"],
            "donate": lambda _: [(), *self.parameters[:1]],
            "values": lambda _: ["**", "*"],
            "fused": lambda _: [True, False],
            # A graph that is cut at each redistribution has no loops.
            "granularity": lambda _: GRANULARITIES[: 1 if plan.mesh.loops else None],
            "wanted": lambda _: [self.expected()],
            "text": lambda graph: [graph.text()] if isinstance(graph, Graph) else (),
            "name": lambda graph: graph.kernels if isinstance(graph, Graph) else (),
            "kernel": lambda graph: graph.kernels if isinstance(graph, Graph) else (),
            "kind": lambda _: COLLECTIVES,
            "width": lambda _: (160, 60),
            "number": lambda memory: memory.largest[:2] if isinstance(memory, Memory) else (),
        }

    @property
    def parameters(self) -> list[str]:
        """The parameters of the function, but for those that take any number of arguments."""
        known = self.plan.source.traced.function.signature.parameters
        return [name for name, each in known.items() if each.kind == each.POSITIONAL_OR_KEYWORD]

    def expected(self) -> dict[str, int | str]:
        """What the plan keeps of all that can be expected."""
        counts = self.plan.counts()
        kinds = {kind: times + counts.in_branches.get(kind, 0) for kind, times in counts.items()}
        limits = dict(zip(QUANTITIES, ("1TiB", "1TiB", "1P", "100%"), strict=True))
        # Nobody can expect a limit of flops from a plan of which none are known.
        flops = self.plan.flops_per_device()
        unknown = flops.unknown and not flops.known
        return kinds | {name: f"<={limit}" for name, limit in limits.items() if not (unknown and "flops" in name)}

    def everything(self) -> None:
        """Asks the plan all of it. What raises says with which question."""
        self.texts("plan", self.plan)
        for name, call in questions(Plan, CHANGES if self.runs else (*CHANGES, "compile", "check")):
            self.ask(f"plan.{name}", self.plan, name, call)
        self.again(self.plan)
        self.cures()
        self.commands()

    def ask(self, said: str, of: object, name: str, is_called: bool) -> None:
        """Asks one question in every way in which it can be asked, and what it answers in turn."""
        if not self.runs and (name in RUNS or (isinstance(of, Graph) and name == "save")):
            return
        if not is_called:
            with saying(said):
                answer = getattr(of, name)
            self.answered(said, answer, of)
            return
        for kwargs, args in self.ways(said, of, getattr(of, name)):
            shown = f"{said}({', '.join([*map(brief, args), *(f'{key}={brief(each)}' for key, each in kwargs.items())])})"
            try:
                with saying(shown):
                    answer = getattr(of, name)(*args, **kwargs)
            except pt.Error:
                if name not in REFUSES:
                    raise AssertionError(f"{shown} refuses") from None
                continue
            self.answered(shown, answer, of)

    def ways(
        self, said: str, of: object, method: Callable[..., object]
    ) -> Iterator[tuple[Mapping[str, Any], Sequence[object]]]:
        """The arguments with which a method is called: none, if it needs none, and each that there is for a parameter."""
        parameters = inspect.signature(method).parameters.values()
        if any(each.kind == each.VAR_POSITIONAL for each in parameters):
            if self.runs:
                yield {}, self.args
            return
        needed = [each for each in parameters if each.default is each.empty and each.kind != each.VAR_KEYWORD]
        unknown = [each.name for each in needed if each.name not in self.given]
        assert not unknown, f"nobody asks {said}: `GIVEN` has nothing for {unknown}"
        assert len(needed) < 2, f"nobody asks {said}, which needs {[each.name for each in needed]} together"
        first = [next(iter(self.given[each.name](of))) for each in needed]
        if not needed:
            yield {}, ()
        for each in parameters:
            for value in self.given[each.name](of) if each.name in self.given else ():
                if each.kind == each.VAR_KEYWORD:
                    yield cast("Mapping[str, Any]", value), ()
                elif each in needed:
                    yield {}, (value,)
                else:
                    yield {each.name: value}, first

    def answered(self, said: str, answer: object, of: object) -> None:
        """Asks an answer: its texts, its items, and, if it is of another kind than what was asked, what it can be asked."""
        if id(answer) in self.seen or isinstance(answer, INSIDE):
            return
        self.seen.add(id(answer))
        self.kept.append(answer)
        self.texts(said, answer)
        if isinstance(answer, Mapping):
            items: Iterable[object] = answer.values()
        else:
            items = answer if isinstance(answer, list | tuple) else ()
        for number, each in enumerate(items):
            self.answered(f"{said}[{number}]", each, answer)
        if is_ours(type(answer)) and type(answer) is not type(of):
            for name, call in questions(type(answer), NOT_ASKED):
                self.ask(f"{said}.{name}", answer, name, call)

    def texts(self, said: str, answer: object) -> None:
        for show in (str,) if isinstance(answer, View) else (str, repr):
            with saying(f"{show.__name__}({said})"):
                assert show(answer)
        if hasattr(type(answer), "_repr_html_"):
            with saying(f"{said}._repr_html_()"):
                assert answer._repr_html_()  # pyright: ignore

    def again(self, plan: Plan) -> None:
        """The plan is the same after its trace, and after its file, is replayed."""
        file = self.folder / "again.partita"
        with saying(f"replaying the trace and the file of\n{plan.trace}"), warnings.catch_warnings():
            warnings.simplefilter("error", pt.ReplayWarning)
            plan.save(file)
            assert same(pt.replay(self.function, plan.mesh.whole(), plan.trace, *self.args), plan)
            assert same(pt.replay(self.function, file, *self.args), plan)

    def cures(self) -> None:
        """After a cure, that for which it was offered is gone, and a device receives and computes what it said."""
        plan = self.plan
        for conflict in plan.conflicts:
            for way in conflict.resolutions:
                with saying(f"the way out {way!r} of {conflict!r}"):
                    made = plan.apply(way)
                    assert conflict.key not in open_keys(made)
                    # A way out does not count what loops compute again.
                    assert (made.bytes_per_device(), cost(made).flops) == (way.bytes, way.flops)
                    self.again(made)
        for rewriting in plan.rewrites():
            with saying(f"the rewriting {rewriting!r}"):
                before, after = plan, plan.apply(rewriting)
                saved = before.bytes_per_device() - after.bytes_per_device(), before.memory().bytes - after.memory().bytes
                assert saved == (rewriting.bytes, rewriting.memory)
        for stop in plan.blocked:
            if stop.cure is None:
                continue
            with saying(f"the cure {stop.cure!r} of {stop}"):
                made = plan.apply(stop.cure)
                assert not is_open(made, stop.first)
                assert stop.cure.tactic in made.trace.splitlines()
                if not stop.cure.place:
                    assert same(eval(stop.cure.text, {"plan": plan}), made)
                cure = stop.cure
                assert (made.bytes_per_device(), made.flops_per_device()) == (cure.bytes, cure.flops)
                self.again(made)

    def commands(self) -> None:
        """Every command of a shell, alone, with each word that completes it, and with each pair of words.

        An Error may answer, as to a command that needs more words.
        """
        session, file = Session.start(self.plan), self.folder / "shell.partita"
        lines = [f"save {file}", f"load {file}", *(f"lower {form} {file}" for form in FORMS)]
        for each in TABLE.values():
            if each.name not in ("check", "run"):
                first = [each.name, *(f"{each.name} {word}" for word in self.words(session, each.name))]
                second = [f"{line} {word}" for line in first[1:] if each.most > 1 for word in self.words(session, line)]
                lines += [*first, *second]
        for line in dict.fromkeys(lines):
            with saying(f"the command `{line}`"), suppress(pt.Error):
                assert isinstance(do(session, Typed(line)).final(), str)

    def words(self, session: Session, line: str) -> list[str]:
        """The words that complete a line; of values, the first ones, because all of them are explained."""
        found = [word.text for word in completions(session, f"{line} ") if not word.text.endswith("/")]
        numbers = ["1"] if line.startswith(("explain ", "resolve", "conflicts")) else []
        return [*found[:MOST_WORDS], *numbers]


def questions(of: type, but: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The public properties, fields and methods of a class of ours, and whether they are called."""
    known: dict[str, object] = {}
    for each in reversed(of.__mro__):
        if is_ours(each) and (each is of or not issubclass(of, State)):
            known |= vars(each) | dict.fromkeys(getattr(each, "__annotations__", {}))
    for name, each in known.items():
        if not name.startswith("_") and name not in but and not isinstance(each, type):
            yield name, isinstance(each, staticmethod | classmethod) or inspect.isfunction(each)


def is_ours(of: type) -> bool:
    return of.__module__.startswith("partita.compiler")


def same(one: Plan, other: Plan) -> bool:
    """Whether two plans place the same: layouts, counts, mesh, and trace."""
    return (one.layout(), one.counts(), one.mesh, one.trace) == (other.layout(), other.counts(), other.mesh, other.trace)


def brief(value: object) -> str:
    return repr(value)[:60]


@contextmanager
def saying(question: str) -> Generator[None]:
    """Says which question it was that raises. An Error is left to who asks."""
    try:
        yield
    except pt.Error:
        raise
    except BaseException as error:
        error.add_note(f"asked: {question}")
        raise


def asked(plan: Plan, function: Callable[..., Any], args: Sequence[Any], folder: Path, *, runs: bool = False) -> None:
    """Asks a plan everything. What raises says with which question."""
    Asked(plan, function, args, folder, runs).everything()
