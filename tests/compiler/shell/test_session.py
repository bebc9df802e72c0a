"""A session without a terminal: each command on a small program, what it changes, and how it is called wrongly."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from models import Transformer, chain, train_step

import partita as pt
from partita.compiler.answers.plan_text import text_of_plan
from partita.compiler.shell import script
from partita.compiler.shell.answer import prompt
from partita.compiler.shell.command_table import TABLE
from partita.compiler.shell.run_line import do
from partita.compiler.shell.session import KEPT, Session
from partita.compiler.shell.typed_line import Typed

MESH = pt.Mesh(data=4, model=2)
SHAPES = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((256, 8), (8, 16), (16, 8))]


@pytest.fixture
def session() -> Session:
    return Session.start(pt.plan(chain, MESH, *SHAPES))


def after(session: Session, lines: Iterable[str]) -> Session:
    for line in lines:
        session = do(session, Typed(line)).session
    return session


def answer(session: Session, *lines: str) -> str:
    """What the last line answers."""
    return do(after(session, lines[:-1]), Typed(lines[-1])).text


def transcript(session: Session, text: str) -> str:
    said: list[str] = []
    script.run_script(session, text.splitlines(), "tactics.txt", said.append)
    return "\n".join(said)


def test_a_session_reads_as_a_conversation(session: Session) -> None:
    assert transcript(session, "tile x.0 @data\ntile w1.1 @model  # and w2 follows\nundo\nredo\nhistory") == (
        "data=4 model=2 · no collectives > tile x.0 @data\n"
        "layouts: x: f32[256, 8] --> f32[data*64, 8]\n  result: f32[256, 8] --> f32[data*64, 8]\n"
        "a device receives 0 bytes in a call; it holds 3.00 KiB of arguments, before 9.00 KiB\n"
        "data=4 model=2 · no collectives > tile w1.1 @model  # and w2 follows\n"
        "layouts: w1: f32[8, 16] --> f32[8, model*8]\n  w2: f32[16, 8] --> f32[model*8, 8]\n"
        "collectives: + 1 all_reduce\n"
        "a device receives 2.00 KiB in a call, before 0 bytes; it holds 2.50 KiB of arguments, before 3.00 KiB\n"
        "data=4 model=2 · 1 all_reduce · 2.00 KiB > undo\n"
        "without tile w1.1 @model\n"
        "layouts: w1: f32[8, model*8] --> f32[8, 16]\n  w2: f32[model*8, 8] --> f32[16, 8]\n"
        "collectives: - 1 all_reduce\n"
        "a device receives 0 bytes in a call, before 2.00 KiB; it holds 3.00 KiB of arguments, before 2.50 KiB\n"
        "data=4 model=2 · no collectives > redo\n"
        "again tile w1.1 @model\n"
        "layouts: w1: f32[8, 16] --> f32[8, model*8]\n  w2: f32[16, 8] --> f32[model*8, 8]\n"
        "collectives: + 1 all_reduce\n"
        "a device receives 2.00 KiB in a call, before 0 bytes; it holds 2.50 KiB of arguments, before 3.00 KiB\n"
        "data=4 model=2 · 1 all_reduce · 2.00 KiB > history\n"
        "mesh data=4, model=2\n"
        "1: tile x.0 @data\n"
        "2: tile w1.1 @model"
    )


@pytest.mark.parametrize(
    ("line", "plan"),
    [
        ("tile x.0 @data @model", lambda p: p.tile("x", 0, "data").tile("x", 0, "model")),
        ("tile x.0, w1.0 @data", lambda p: p.apply(pt.Tile({"x": 0, "w1": 0}, "data"))),
        ("tile x.0 @data; tile w1.1 @model", lambda p: p.tile("x", 0, "data").tile("w1", 1, "model")),
        ("tile x.0 @data.0:2", lambda p: p.tile("x", 0, "data.0:2")),
        ("tile x.0 @data block 16", lambda p: p.tile("x", 0, "data", block=16)),
        ("tile range w1.1 over model", lambda p: p.apply(pt.TileRange("w1.1", "model"))),
        ("name x.0 as B; tile range B over data", lambda p: p.name("x", 0, "B").apply(pt.TileRange("B", "data"))),
        ("replicate w1, w2 @model", lambda p: p.replicate(["w1", "w2"], "model")),
        ('DataParallel("data", inputs="x")', lambda p: p.apply(pt.DataParallel("data", inputs="x"))),
        ("tile('x', 0, 'data', propagate=False)", lambda p: p.tile("x", 0, "data", propagate=False)),
    ],
)  # fmt: skip
def test_a_line_of_tactics_is_a_plan(session: Session, line: str, plan: Callable[[pt.Plan], pt.Plan]) -> None:
    made, wanted = after(session, [line]).plan, plan(session.plan)
    assert (made.trace, made.layout(), made.counts()) == (wanted.trace, wanted.layout(), wanted.counts())


ANSWERS = {
    "show w*": "w1      f32[8, model*8]",
    "plan": "collectives: 1 all_reduce",
    "program": "chain at models.py:163: 2 ops, for 8 devices, data=4 model=2\n  x    f32[data*64, 8]\n  w1   f32[8, model*8]",
    "annotations": "the program has no annotations",
    "ranges": "w1.1   16",
    "explain w1": "dim 1 on `model`: decided by 2: tile w1.1 @model",
    "explain w1 all": "dim 1 on `model`",
    "explain collective 1": "all_reduce of `result`, made at models.py:165 in chain, over model",
    "collectives": "1    result  all_reduce  model      1        2,048  the result  made at models.py:165  2",
    "collectives all_gather": "no collectives",
    "collectives over model": "1    result  all_reduce",
    "collectives result": "1    result  all_reduce",
    "collectives all": "`explain collective NUMBER` says why one runs",
    "conflicts": "no open conflicts",
    "memory all": "temporary",
    "memory": "bytes on a device at the peak",
    "blocked": "no stops",
    "silent": "replicated",
    "bytes": "2.00 KiB over model",
    "diff": "all_reduce: 0 --> 1",
    "diff 0": "x: f32[256, 8] --> f32[data*64, 8]",
    "branch": "* main: data=4 model=2 · 1 all_reduce · 2.00 KiB",
    "rewrites": "reassociate        result               1         1,792         7,168          3,584",
    "lower": "spmd.all_reduce add",
    "lower graph": "flow.graph @main",
    "check": "1 result agrees with the unpartitioned run",
    "run": "f32[data*64, 8]",
    "help": "Tactics change the plan",
    "help tile": 'tile("x", 0, "data"):',
    "help ZeRO": "Shard optimizer state",
    "help undo": "Goes back one step",
    "": "",
    "# a comment": "",
}


@pytest.mark.parametrize("line", ANSWERS)
def test_a_question_leaves_the_plan_as_it_is(session: Session, line: str) -> None:
    placed = after(session, ["tile x.0 @data", "tile w1.1 @model"])
    found = do(placed, Typed(line))
    assert ANSWERS[line] in found.final()
    assert found.session is placed


def test_every_command_has_an_example_and_help_that_fits_a_line() -> None:
    for name, each in TABLE.items():
        assert each.example.split()[0] == each.usage.split()[0] == name
        assert each.least <= len(each.example.split()) - 1 <= each.most
        assert (each.run.__doc__ or "").partition("\n")[0].endswith((".", ","))


WRONG = {
    "tiel x.0 @data": ("unknown command `tiel`", 1, "did you mean `tile`"),
    "ZeRO 3": ("unknown command `ZeRO`", 1, "call it"),
    "tile w3.0 @data": ("no value is named `w3`", 6, "did you mean `w2` or `w1`?"),
    "tile x.7 @data": ("`x` has no dim 7", 6, "0 to 1"),
    "tile x.0 @dta": ("the mesh has no axis `dta`", 11, "did you mean `data`?"),
    "tile x.0": ("`tile x.0` needs a mesh axis", 1, "tile x.0 @data"),
    "tile x.0 @data; tile w9.1 @model": ("no value is named `w9`", 22, "did you mean"),
    "tile range batch over data": ("no range is named `batch`", 12, ""),
    'DataParallel("dta", inputs="x")': ("the mesh has no axis `dta`", 15, "did you mean `data`?"),
    'DataParalel("data", inputs="x")': ("unknown tactic `DataParalel`", 1, "DataParallel"),
    "tile x 0 data": ("unexpected `0`", 8, ""),
    "tile w1.1 model": ("unexpected `model`", 11, "did you mean `@model`?"),
    "replicate w1 model": ("unexpected `model`", 14, "did you mean `@model`?"),
    "propagate @model": ("unexpected `@`", 11, "by its name alone"),
    "tile range w1.1 @model": ("unexpected `@`", 17, "after `over`"),
    "name x.0 B": ("unexpected `B`", 10, "after `as`"),
    "FSDP(data)": ("expected a tactic on this line", 1, "put names in quotes: `FSDP('data')`"),
    "Tile({x: 0}, axis=data)": ("expected a tactic on this line", 1, "`Tile({'x': 0}, axis='data')`"),
    "FSDP(print(1))": ("expected a tactic on this line", 1, "see `docs/notation.md`"),
    "explain 1": ("a number alone names nothing to explain, got `1`", 9, "`explain collective 1` or `explain conflict 1`"),
    "undo 9": ("nothing to undo", 1, "`history` lists the tactics"),
    "explain w7": ("no value is named `w7`", 9, "did you mean"),
    "explain": ("`explain` needs more words", 8, "as `explain params/w1`"),
    "explain collective": ("`explain collective` needs a number", 9, "there are none"),
    "explain all_reduce": ("is a kind of collective", 9, "`collectives all_reduce` lists them"),
    "collectives 3": ("got the number `3`", 13, "write `explain collective 3`"),
    "blocked 1": ("expected the number of a stop, got `1`", 9, "there are none"),
    "undo; tile w9.0 @data": ("nothing to undo", 1, ""),
    "show; tile w9.0 @data": ("no value is named `w9`", 12, "did you mean"),
    "history ; explain  w7": ("no value is named `w7`", 20, "did you mean"),
    "explain collective 3": ("expected the number of a collective, got `3`", 20, "there are none"),
    "undo": ("nothing to undo", 1, "`history`"),
    "undo 1 2": ("expected the end here", 8, "write `undo [STEPS]`"),
    "undo x": ("expected a number of steps above 0, got `x`", 6, ""),
    "undo -1": ("expected a number of steps above 0, got `-1`", 6, ""),
    "redo 0": ("expected a number of steps above 0, got `0`", 6, ""),
    'branch ""': ("a branch needs a name", 8, "`branch wide`"),
    "diff wide": ("there is no branch `wide`", 6, "the branches are main"),
    "resolve 1": ("expected the number of an open conflict, got `1`", 9, "there are none"),
    "lower smpd": ("`smpd` is not a lowered form", 7, "spmd"),
    "help tiel": ("there is no help on `tiel`", 6, "tile"),
    "load nowhere.partita": ("no such file: `nowhere.partita`", 6, "the folder is"),
    "collectives q": ("no value is named `q`", 13, ""),
}


@pytest.mark.parametrize("line", WRONG)
def test_an_error_points_at_what_was_typed_and_changes_nothing(session: Session, line: str) -> None:
    title, column, help = WRONG[line]
    with pytest.raises(pt.Error) as caught:
        do(session, Typed(line, 3, "tactics.txt"))
    assert title in caught.value.title
    assert caught.value.location is not None
    assert (caught.value.location.file, caught.value.location.line, caught.value.location.text) == ("tactics.txt", 3, line)
    assert caught.value.location.column == column, str(caught.value)
    assert help in " ".join(caught.value.helps)


def test_a_number_alone_asks_for_the_lists_that_are_so_long(session: Session) -> None:
    placed = after(session, ["tile x.0 @data", "tile w1.1 @model"])
    with pytest.raises(pt.Error) as caught:
        do(placed, Typed("explain 1"))
    assert caught.value.helps == ("write `explain collective 1`",)


def test_what_cannot_be_undone_says_nothing_of_branches(session: Session) -> None:
    with pytest.raises(pt.Error) as caught:
        do(after(session, ["tile x.0 @data"]), Typed("undo 9"))
    assert (caught.value.title, caught.value.helps) == ("there is 1 step to undo, not 9", ("`history` lists the tactics",))


LINES = {
    "tile x.0 @data; history; undo": "mesh data=4, model=2\n1: tile x.0 @data\nwithout tile x.0 @data",
    "history; # tile x.0 @data; undo": "no tactics so far",
    'branch "a;b"; history': "`a;b` begins here\nmesh data=4, model=2\nno tactics so far",
    ";; history ;": "mesh data=4, model=2\nno tactics so far",
    "history; quit; undo": "mesh data=4, model=2\nno tactics so far",
    "history; clear; program": "chain at",
    "exit; undo": "",
    "?": "Tactics change the plan",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_may_have_several_commands(session: Session, line: str) -> None:
    assert LINES[line] in answer(session, line)


def test_tactics_beside_each_other_say_once_what_they_change(session: Session) -> None:
    said = answer(session, "tile x.0 @data; tile w1.1 @model; history; tile w1.0 @data")
    assert [said.count(word) for word in ("layouts: ", "collectives: ", "mesh")] == [2, 2, 1]


def test_of_a_line_that_fails_nothing_is_done(session: Session) -> None:
    with pytest.raises(pt.Error):
        do(session, Typed("tile x.0 @data; history; tile x.9 @data"))
    assert session.plan.trace == ""


def test_tactics_can_be_pasted_from_python(session: Session) -> None:
    pasted = 'plan.tile("x", 0, "data"); pt.Megatron("model", column="w1")'
    assert after(session, [pasted]).plan.trace == after(session, [pasted.replace("plan.", "").replace("pt.", "")]).plan.trace


def test_collectives_have_the_numbers_by_which_they_are_explained(session: Session) -> None:
    placed = after(session, ["tile w1.1 @model; tile x.0 @data; tile w1.0 @data"])
    every = placed.plan.collectives()
    assert len(every) > 1
    for number, each in enumerate(every, 1):
        rows = answer(placed, f"collectives {each.kind}").splitlines()
        assert any(row.split()[:2] == [str(number), each.value] for row in rows)
        assert answer(placed, f"explain collective {number}") == answer(placed, f"explain collective {number} all")
        assert answer(placed, f"explain collective {number}").startswith(f"{each.kind} of `{each.value}`")


def test_rows_that_are_one_have_all_of_their_numbers() -> None:
    def layers(x: jax.Array, ws: list[dict[str, jax.Array]]) -> jax.Array:
        for w in ws:
            x = jnp.tanh(x @ w["w"])
        return x

    float32 = jax.ShapeDtypeStruct((16, 16), jnp.float32)
    session = Session.start(pt.plan(layers, MESH, float32, [{"w": float32}] * 3).tile("x", 0, "data").tile("ws/*/w", 0, "data"))
    assert "\n1-3  ws/*/w x 3 " in answer(session, "collectives all_gather")


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_prompt_leaves_room_to_type(width: int) -> None:
    mesh = pt.Mesh(replicas=2, data=2, model=2)
    plan = pt.plan(chain, mesh, *SHAPES).tile("x", 0, ("replicas", "data")).tile("w1", 1, "model").tile("w1", 0, "data")
    session = Session.start(plan, width).on("a-branch-whose-name-is-long")
    assert len(prompt(session)) <= max(width - 32, 20)
    assert prompt(session).startswith("a-")


def test_a_prompt_is_said_shorter_on_a_narrow_screen(session: Session) -> None:
    placed = after(session, ["tile x.0 @data; tile w1.1 @model; tile w2.1 @data"])
    assert [prompt(replace(placed, width=width)) for width in (100, 80, 66, 50)] == [
        "data=4 model=2 · 1 all_gather 1 all_reduce · 2.19 KiB > ",
        "data=4 model=2 · 2 collectives · 2.19 KiB > ",
        "4x2 · 2 collectives · 2.19 KiB > ",
        "4x2 · 2.19 KiB > ",
    ]


def test_many_arguments_are_told_by_their_trees() -> None:
    session = Session.start(pt.plan(train_step, MESH, *Transformer(2).shapes()), width=80)
    first, *trees = answer(session, "program").splitlines()
    assert first.startswith("train_step at models.py:") and first.endswith(" ops, for 8 devices, data=4 model=2")
    assert [line.split()[0] for line in trees] == ["params", "opt", "batch"]
    assert "arrays" in trees[0] and "the largest is params/" in trees[0]


def test_help_is_a_line_for_each_command_on_80_columns() -> None:
    session = Session.start(pt.plan(chain, MESH, *SHAPES), width=80)
    lines = answer(session, "help").splitlines()
    assert max(map(len, lines)) <= 80
    assert [each.example for each in TABLE.values() if not any(line.startswith(f"  {each.example} ") for line in lines)] == []
    assert sum(line.startswith(" " * 24) for line in lines) == 0


def test_branches_are_plans_of_their_own(session: Session) -> None:
    wide = after(session, ["tile x.0 @data", "branch wide", "tile w1.1 @model", "branch main", "tile w1.0 @data"])
    assert list(wide.branches) == ["main", "wide"]
    assert wide.plan.trace == "tile('x', 0, 'data')\ntile('w1', 0, 'data')"
    assert wide.named("wide").trace == "tile('x', 0, 'data')\ntile('w1', 1, 'model')"
    assert "w1: f32[8, model*8] --> f32[data*2, 8]" not in answer(wide, "diff wide")
    assert "w1: f32[8, model*8] --> f32[data*2, 16]" in answer(wide, "diff wide")
    assert prompt(wide).startswith("main: data=4 model=2")


def test_what_was_undone_is_forgotten_by_another_step(session: Session) -> None:
    there = after(session, ["tile x.0 @data", "undo", "tile w1.1 @model"])
    assert len(there.branch.plans) == 2
    with pytest.raises(pt.Error, match="nothing to redo"):
        do(there, Typed("redo"))


def test_old_steps_keep_no_answers(session: Session) -> None:
    there = after(session, [f"replicate w{1 + at % 2} @{axis}" for at in range(4) for axis in MESH])
    assert ["decisions" in vars(plan) for plan in there.branch.plans[: -KEPT - 1]] == [False] * (9 - KEPT - 1)
    assert after(there, ["undo 8"]).plan.counts() == session.plan.counts()


def gram(x: jax.Array) -> jax.Array:
    return x @ x.T


def test_a_conflict_is_found_explained_and_resolved() -> None:
    session = Session.start(pt.plan(gram, MESH, jax.ShapeDtypeStruct((64, 16), jnp.float32)))
    assert "`conflicts 1` shows ways out" in answer(session, "tile x.0 @data")
    tiled = after(session, ["tile x.0 @data"])
    assert answer(tiled, "conflicts").startswith("1: conflict on `data` in `dot_general` at test_session.py")
    assert "1: replicate transpose#0 @data: a device then receives 3.00 KiB" in answer(tiled, "conflicts 1")
    assert "`data`" in answer(tiled, "explain conflict 1")
    assert "the conflict is resolved" in answer(tiled, "resolve 1")
    assert after(tiled, ["resolve 1"]).plan.conflicts == after(tiled, ["resolve all"]).plan.conflicts == []


def ordered(x: jax.Array) -> jax.Array:
    return jnp.sort(x, axis=0) * 2


def test_a_stop_is_found_explained_and_cured() -> None:
    session = Session.start(pt.plan(ordered, MESH, jax.ShapeDtypeStruct((64, 16), jnp.float32)))
    tiled = after(session, ["tile x.0 @data"])
    assert answer(tiled, "blocked").startswith("1: `data` (4 devices) stops at sort")
    assert "help: " in answer(tiled, "blocked 1") and "help: " in answer(tiled, "explain stop 1")
    assert all("`cure 1`: " not in answer(tiled, line) for line in ("blocked", "blocked 1"))
    cured = after(tiled, ["cure 1"])
    assert cured.plan.blocked == []
    assert after(cured, ["undo"]).plan.trace == tiled.plan.trace
    with pytest.raises(pt.Error, match="expected the number of a stop, got `2`"):
        do(tiled, Typed("cure 2"))


def test_a_cure_that_changes_an_earlier_tactic_says_how_it_is_taken() -> None:
    session = Session.start(pt.plan(jnp.sort, MESH, jax.ShapeDtypeStruct((64,), jnp.float32)))
    tiled = after(session, ["tile a.0 @data"])
    assert all("`cure 1`: " in answer(tiled, line) for line in ("blocked", "blocked 1"))
    assert after(tiled, ["cure 1"]).plan.blocked == []


def test_a_session_is_a_plan_file(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["tile x.0 @data", 'Megatron("model", column="w1")']
    placed = after(session, [*lines, "save plan.partita"])
    assert (tmp_path / "plan.partita").read_text() == text_of_plan(placed.plan)
    again = after(session, ["tile x.0 @model", "load plan.partita"])
    assert (again.plan.trace, again.plan.layout()) == (placed.plan.trace, placed.plan.layout())
    assert after(again, ["undo"]).plan.trace == "tile('x', 0, 'model')"
    assert pt.replay(chain, "plan.partita", *SHAPES).layout() == placed.plan.layout()


def test_load_says_what_a_plan_file_does_otherwise_now(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    after(session, ["tile w1.1 @model", "save plan.partita"])
    larger = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((256, 8), (8, 32), (32, 8))]
    said = answer(Session.start(pt.plan(chain, MESH, *larger)), "load plan.partita")
    assert "warning: the program has changed since `plan.partita` was saved, and its tactics do the same" in said
    assert "`w1` was f32[8, 16], is f32[8, 32]" in said


def test_a_script_ends_at_quit_and_at_the_first_error(session: Session) -> None:
    assert transcript(session, "quit\ntile x.9 @data").endswith("> quit")
    said: list[str] = []
    with pytest.raises(pt.Error) as caught:
        script.run_script(session, ["tile x.0 @data", "", "tile y.0 @data", "undo"], "tactics.txt", said.append)
    assert str(caught.value).splitlines()[1] == "  --> tactics.txt:3:6"
    assert [line for line in said if " > " in line and "undo" in line] == []


def test_a_script_shows_what_rewritings_save_when_all_are_tried() -> None:
    def low_rank(x: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        return x @ (a @ b)

    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((4, 32), (32, 4), (4, 32))]
    session = Session.start(pt.plan(low_rank, MESH, *shapes))
    first = do(session, Typed("rewrites"))
    assert first.text.endswith("0 of 1 tried")
    wanted = session.plan.rewrites().text(session.width)
    assert "reassociate" in wanted
    assert first.final() == wanted
    assert transcript(session, "rewrites") == f"{prompt(session)}rewrites\n{wanted}"
    assert do(session, Typed("rewrites; history")).final() == f"{wanted}\n{answer(session, 'history')}"
    assert do(session, Typed("history; rewrites")).final() == f"{answer(session, 'history')}\n{wanted}"
