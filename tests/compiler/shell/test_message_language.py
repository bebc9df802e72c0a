"""What a text tells its reader to type is in the reader's language: Python's, or the shell's in a session."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from models import Transformer, train_step
from offenders import none
from root import ROOT
from strategies import strategy

import partita as pt
from partita.compiler.inputs import message_language as reader
from partita.compiler.inputs.message_language import Question
from partita.compiler.shell.command_table import TABLE
from partita.compiler.shell.message_language import language
from partita.compiler.shell.run_line import do
from partita.compiler.shell.session import Session
from partita.compiler.shell.typed_line import Typed

PYTHON = re.compile(r"\bplan\.[a-z_]+\b(?!\.partita)|\bpt\.[A-Z]\w*\(|\s\.all\(\)")
# Errors of what only Python can do: to keep an object of one plan for another one, to pickle it, and to expect counts.
ONLY_PYTHON = {
    "another plan, and its stop": "take one of a stop of this plan: plan.blocked[0].cure",
    "no conflict": "take one of plan.conflicts: plan.resolve(plan.conflicts[0])",
    "all of them": "to resolve all: plan.apply(pt.Resolve())",
    "another plan's conflict": "take one of plan.conflicts",
    "another plan's collective": "take one of plan.collectives()",
    "another plan's stop": "take one of plan.blocked",
    "expectations": "`plan.explain(value)` says which tactic decided",
    "pickle": "keep its text, `plan.trace`: pt.replay(fn, mesh, text, *args) makes the plan again",
    "a function as a tactic": "apply this one to a plan: plan.apply(tactic)",
}


def written(path: Path) -> Iterator[str]:
    """The texts of a file, but for its docstrings."""
    tree = ast.parse(path.read_text())
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def test_no_text_about_a_plan_writes_python_itself() -> None:
    # They ask `inputs/message_language.py` for it.
    files = [
        path
        for folder in ("plan", "cost", "structure", "advice", "answers", "views", "api/tactics")
        for path in (ROOT / "compiler" / folder).rglob("*.py")
    ]
    found = [(path, text) for path in files for text in written(path) if PYTHON.search(text)]
    none([f"{path.name}: {text!r}" for path, text in found if text not in ONLY_PYTHON.values()])
    assert {text for _, text in found} == {*ONLY_PYTHON.values()}


def test_each_question_is_a_line_of_the_shell() -> None:
    assert {each.shell.split()[0] for each in Question} <= TABLE.keys()


STEPS: dict[tuple[str, ...], tuple[str, str]] = {
    ("tile('x', 0, 'data')",): ("plan.tile('x', 0, 'data')", "`tile x.0 @data`"),
    ('tile("x", 0, ...)',): ('plan.tile("x", 0, ...)', "`tile x.0 @AXIS`"),
    ('Tile({"x": 0}, "data", block=4)',): ('pt.Tile({"x": 0}, "data", block=4)', '`Tile({"x": 0}, "data", block=4)`'),
    ('Tile({"x": 0, "y": 1}, "data")',): ('pt.Tile({"x": 0, "y": 1}, "data")', "`tile x.0, y.1 @data`"),
    ('rewrite("recompute", at=...)',): ('plan.rewrite("recompute", at=...)', '`rewrite("recompute", at=...)`'),
    ("Annotated()",): ("pt.Annotated()", "`Annotated()`"),
    ("tile('x', 0, 'data')", "tile('y', 1, 'data')"): (
        "plan.tile('x', 0, 'data').tile('y', 1, 'data')",
        "`tile x.0 @data; tile y.1 @data`",
    ),
    ('DataParallel("data")', 'FSDP("data")'): (
        'plan.apply(pt.DataParallel("data"), pt.FSDP("data"))',
        '`DataParallel("data"); FSDP("data")`',
    ),
}


@pytest.mark.parametrize("lines", STEPS, ids=" ".join)
def test_a_step_is_what_its_reader_types(lines: tuple[str, ...]) -> None:
    python, shell = STEPS[lines]
    assert reader.step(*lines) == python
    with reader.read_in(language(Typed("blocked"))):
        assert reader.step(*lines) == shell
    assert reader.step(*lines) == python


def test_an_option_is_that_of_a_statement_or_of_a_call() -> None:
    for line, wanted in {"tile x.0 @data": "`padded`", 'FSDP("data")': "padded=True"}.items():
        with reader.read_in(language(Typed(line))):
            assert reader.option("padded") == wanted
    assert reader.option("padded") == "padded=True"


def stopped(x: jax.Array) -> jax.Array:
    return jnp.sort(x @ x.T, axis=0)


def answers(plan: pt.Plan, lines: list[str]) -> Iterator[str]:
    """What a session says to these lines, its errors included."""
    session = Session.start(plan, width=80)
    for line in lines:
        try:
            answer = do(session, Typed(line))
        except pt.Error as error:
            # But for the line itself, which the error quotes.
            yield "\n".join([error.title, error.label, *error.notes, *error.helps])
        else:
            session = answer.session
            yield answer.final()


SMALL = ["tile x.0 @data", "tile x.1 @model", "tile dot_general#0.0 @data", "tile dot_general#0.0 @model"]
LOOKED = ["plan", "blocked", "blocked 1", "conflicts", "conflicts 1", "collectives", "silent", "memory", "ranges", "rewrites"]
WRONG = [
    "tile x.0 @model",
    "tile x.nope @data",
    "tile range nope over data",
    "Tile('x', 'data')",
    "Tile('data', {'x': 0})",
    "DataParallel(('data',), inputs='nope')",
    "SequenceParallel('data')",
    "FSDP('data')",
    "rewrite('reassociate', at='nope')",
    "rewrite('chunk', at='x', dim=0, trips=8)",
    "rewrite('factor', at='x', dim=0)",
    "tile('x', 0, '')",
    "name('x', 0, 'a b')",
    "Annotated()",
    "ZeRO('data', 3)",
    "explain nope",
]


def test_a_session_never_tells_its_reader_to_type_python() -> None:
    small = pt.plan(stopped, pt.Mesh(data=2, model=2), jax.ShapeDtypeStruct((16, 16), jnp.float32))
    large = pt.plan(train_step, pt.Mesh(data=2, model=2), *Transformer(6).shapes())
    ways = [f"explain {each} 1" for each in ("stop", "conflict", "collective")]
    said = [
        *answers(small, [*SMALL, *LOOKED, *ways, *WRONG, "undo", "undo", "undo", *LOOKED, *ways]),
        *answers(large, ["show", "show params/**", *(f"replicate params/blocks/{n}/w1 @data" for n in range(6)), *LOOKED]),
    ]
    assert [text for text in said if PYTHON.search(text) or re.search(r"\b(tile|replicate)\(", text)] == []
    assert any("`show all` shows all" in text for text in said)


def test_what_an_answer_leaves_out_is_shown_by_the_line_that_it_names() -> None:
    plan = pt.plan(train_step, pt.Mesh(data=2, model=2), *Transformer(6).shapes()).apply(*strategy("BP+MP+Z3"))
    for line in ("show", "show params/**", "collectives", "silent", "memory", "explain params/**", "diff 0"):
        (short,) = answers(plan, [line])
        if f"`{line} all`" in short:
            (whole,) = answers(plan, [f"{line} all"])
            assert len(whole) > len(short) and " all`" not in whole
