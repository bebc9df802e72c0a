"""A session in a terminal: what it shows is what a script gets, and Tab completes what can follow."""

import io
from collections.abc import Sequence

import jax
import pytest
from models import Transformer, chain, train_step
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console
from strategies import strategy

import partita as pt
from partita.compiler.advice import rewrites
from partita.compiler.advice.rewrite_candidates import LawCandidate
from partita.compiler.plan.state import State
from partita.compiler.shell import script
from partita.compiler.shell.completion import completions
from partita.compiler.shell.screen import folded, greeting
from partita.compiler.shell.script import picture
from partita.compiler.shell.session import Session
from partita.compiler.shell.terminal import Terminal
from partita.compiler.shell.terminal_colours import styles
from partita.compiler.shell.typed_line import Typed
from partita.compiler.views.colours import coloured_pieces
from partita.rewrites.decide.price import Price

MESH = pt.Mesh(data=4, model=2)
SHAPES = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((256, 8), (8, 16), (16, 8))]


def small() -> Session:
    return Session.start(pt.plan(chain, MESH, *SHAPES))


def typed(keys: str, session: Session) -> tuple[str, Session]:
    """What a terminal without colours shows while these keys are pressed, and the session at the end."""
    shown = Console(file=io.StringIO(), width=100)
    with create_pipe_input() as keyboard:
        keyboard.send_text(keys)
        last = Terminal(session, shown, keyboard, DummyOutput()).run()
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue(), last


LINES = ["tile x.0 @data", "tile w1.1 @model", "explain w1", "collectives", "diff 0", "undo", "branch wide", "help tile"]


def test_a_terminal_answers_as_a_script_does() -> None:
    said: list[str] = []
    script.run_script(small(), LINES, "shell", lambda text: said.append(text) if " > " not in text else None)
    shown, _ = typed("\r".join([*LINES, "quit", ""]), small())
    assert shown == "\n".join([greeting(small()), *(folded(text, 100) for text in said), ""])


def test_an_error_is_shown_and_the_session_goes_on() -> None:
    shown, last = typed("tile w9.0 @data\rtile x.0 @data\r\x04", small())
    assert "  --> shell:1:6\n   |\n 1 | tile w9.0 @data\n   |      ^^\n" in shown
    assert last.plan.trace == "tile('x', 0, 'data')"


def test_an_exception_that_is_no_error_ends_a_session_and_leaves_its_tactics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing hides what a command raises from inside, and nothing that was typed is lost."""

    def broken(*_: object) -> None:
        raise KeyError("%7")

    monkeypatch.setattr(pt.Plan, "blocked", property(broken))
    shown = Console(file=io.StringIO(), width=100)
    with create_pipe_input() as keyboard:
        keyboard.send_text("tile x.0 @data\rblocked\r\x04")
        with pytest.raises(KeyError):
            Terminal(small(), shown, keyboard, DummyOutput()).run()
    assert isinstance(shown.file, io.StringIO)
    assert shown.file.getvalue().endswith("the session ends by an exception; its tactics were:\ntile x.0 @data\n")


def test_ctrl_c_drops_the_line() -> None:
    _, last = typed("tile nothing\x03tile w1.1 @model\r\x04", small())
    assert last.plan.trace == "tile('w1', 1, 'model')"


def test_prompt_toolkit_is_given_the_completions_and_what_they_are() -> None:
    with create_pipe_input() as keyboard:
        terminal = Terminal(small(), Console(file=io.StringIO()), keyboard, DummyOutput())
        (only,) = terminal.get_completions(Document("tile w1.1 @mo"), CompleteEvent())
    assert (only.text, only.start_position, only.display_meta_text) == ("@model", -3, "2 devices")


@pytest.fixture(scope="module")
def transformer() -> Session:
    return Session.start(pt.plan(train_step, MESH, *Transformer(2).shapes()).apply(*strategy("BP+MP")))


COMPLETED = {
    "ti": ["tile"],
    "exp": ["explain"],
    "Meg": ["Megatron("],
    "tile ": ["range", "params/", "opt/", "batch/", "result/", "backward/"],
    "tile params/": ["params/blocks/", "params/embed"],
    "tile params/blocks/1/w": ["params/blocks/1/w1", "params/blocks/1/w2", "params/blocks/1/wo", "params/blocks/1/wqkv"],
    "tile params/blocks/1/w1.": ["0", "1"],
    "tile params/embed.0, ba": ["batch/", "backward/"],
    "tile params/embed.0 ": ["@data", "@model"],
    "tile params/embed.0 @": ["@data", "@model"],
    "tile params/embed.0 @data p": ["padded"],
    "tile x.0 @data; repl": ["replicate"],
    "tile range b": ["batch"],
    "tile range batch ": ["over"],
    "tile range batch over m": ["model"],
    "replicate params/em": ["params/embed"],
    "propagate ": ["data", "model"],
    "name batch/x.0 ": ["as"],
    "Megatron(c": ["column="],
    'Megatron("': ["data", "model", "params/", "opt/", "batch/", "result/", "backward/"],
    'ZeRO(3, "data", params="params/e': ["params/embed"],
    'rewrite("rea': ["reassociate"],
    'rewrite("factor", at="': [],
    "explain params/emb": ["params/embed"],
    "explain coll": ["collective"],
    "collectives all_": ["all_gather", "all_reduce", "all_to_all"],
    "collectives over m": ["model"],
    "lower s": ["spmd", "stablehlo"],
    "diff ": ["main", "full"],
    "branch ": ["main"],
    "help Ze": ["ZeRO"],
    "undo ": [],
    "nonsense ": [],
}


@pytest.mark.parametrize("before", COMPLETED)
def test_what_can_follow_is_known(transformer: Session, before: str) -> None:
    found = [each.text for each in completions(transformer, before) if "->" not in each.text]
    assert found == COMPLETED[before]


DESCRIBED = {
    "tile params/embed": ("params/embed", "f32[32, 16]"),
    "tile params/": ("params/blocks/", "18 values"),
    "tile params/blocks/0/w1.1": ("1", "32 params/blocks/0/w1.1"),
    "tile params/embed.0 @da": ("@data", "4 devices"),
    "tile range batch": ("batch", "16: batch/x.0"),
    "explain params/blocks/0/w1": ("params/blocks/0/w1", "f32[16, model*16]"),
    "Widen": ("Widen(", (pt.Widen.__doc__ or "").partition("\n")[0]),
}  # fmt: skip


@pytest.mark.parametrize("before", DESCRIBED)
def test_a_completion_says_what_it_is(transformer: Session, before: str) -> None:
    assert DESCRIBED[before] in [(each.text, each.meta) for each in completions(transformer, before)]


def test_a_completion_replaces_the_word_that_is_typed(transformer: Session) -> None:
    for before in COMPLETED:
        for each in completions(transformer, before):
            # What is typed begins what is put in its place, apart from the place of a dim and the quotes of a call.
            assert each.text.startswith(before[each.start :])


def coloured(text: str) -> Sequence[tuple[str, str]]:
    return [(piece, style) for piece, style in coloured_pieces(text, styles(text, MESH)) if style]


@pytest.mark.parametrize(
    ("text", "colours"),
    [
        ("w1: f32[data*64, model*8]{+model}", [("data", "cyan"), ("model", "magenta"), ("model", "magenta")]),
        ("x: f32[data.0:2*128, 8]", [("data.0:2", "cyan")]),
        ("tile params/data/x.0 @data", [("data", "cyan")]),
        ("at data.py:3 in model(x)", []),
        ("error: no axis\n   |   ^^^ here", [("error", "bold red"), ("^^^", "red")]),
    ],
)
def test_an_axis_has_its_colour_everywhere(text: str, colours: list[tuple[str, str]]) -> None:
    assert coloured(text) == colours


def test_a_terminal_colours_what_is_typed() -> None:
    with create_pipe_input() as keyboard:
        terminal = Terminal(small(), Console(file=io.StringIO()), keyboard, DummyOutput())
        line = terminal.lex_document(Document("tile x.0 @data"))(0)
    assert line == [("bold", "tile x.0 @"), ("fg:ansicyan", "data"), ("bold", "")]


def test_clear_clears_the_screen_before_what_comes_after_it() -> None:
    shown = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    with create_pipe_input() as keyboard:
        Terminal(small(), shown, keyboard, DummyOutput()).answer(Typed("program; clear; history"))
    assert isinstance(shown.file, io.StringIO)
    assert shown.file.getvalue() == "\x1b[2J\x1b[Hmesh data=4, model=2\nno tactics so far\n"


def test_a_terminal_may_become_narrower() -> None:
    session = small()
    shown = Console(file=io.StringIO(), width=60)
    with create_pipe_input() as keyboard:
        keyboard.send_text("tile x.0 @data\r\x04")
        assert Terminal(session, shown, keyboard, DummyOutput()).run().width == 60
    assert isinstance(shown.file, io.StringIO)
    assert max(map(len, shown.file.getvalue().splitlines())) <= 60


def test_clear_is_for_the_screen_alone() -> None:
    shown, last = typed("clear; tile x.0 @data\rhistory; clear; undo\r\x04", small())
    assert "1: tile x.0 @data" not in shown and "without tile x.0 @data" in shown
    assert last.plan.trace == ""


def test_a_session_is_recorded_as_a_picture() -> None:
    svg, failed = picture(small(), ["tile x.0 @data", "show"], "tactics.txt", "partita shell")
    assert svg.startswith("<svg") and "data" in svg and failed is None
    assert (svg, None) == picture(small(), ["tile x.0 @data", "show"], "tactics.txt", "partita shell")


def test_the_picture_of_a_session_that_fails_shows_it_up_to_the_error() -> None:
    svg, failed = picture(small(), ["tile x.0 @data", "tiel", "show"], "tactics.txt", "partita shell")
    assert failed is not None and failed.title == "unknown command `tiel`"
    assert "unknown&#160;command" in svg and "memory" not in svg


def test_ctrl_c_keeps_what_has_been_tried(monkeypatch: pytest.MonkeyPatch, transformer: Session) -> None:
    tried: list[str] = []

    def tries(plan: State, each: LawCandidate) -> rewrites.Saved:
        if len(tried) == 2:
            tried.append("stopped")
            raise KeyboardInterrupt
        tried.append(each.law)
        return rewrites.Saved(1_000, 0, 0, Price(0.0, 0))

    monkeypatch.setattr(rewrites, "_tried", tries)
    session = Session.start(transformer.plan.replicate("batch/x", "model"))
    with create_pipe_input() as keyboard:
        shown = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
        terminal = Terminal(session, shown, keyboard, DummyOutput())
        terminal.answer(Typed("rewrites"))
        terminal.answer(Typed("rewrites all"))
    assert isinstance(shown.file, io.StringIO)
    begun, _, rest = shown.file.getvalue().partition("stopped: `rewrites` goes on from here\n")
    assert begun.rstrip().endswith(" tried")
    assert "1,000" in begun
    assert tried.count("stopped") == 1
    assert "1,000" in rest
    assert not rest.rstrip().endswith(" tried")
    assert terminal.session.plan is session.plan
