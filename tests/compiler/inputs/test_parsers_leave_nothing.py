"""What a parser returns holds plain strings, whatever read the text; and a term that is kept for ever holds no others."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import enum
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import lark
import numpy as np
import pytest
from reachable import reachable
from root import ROOT

import partita as pt
from partita.compiler.graph.graph import Graph
from partita.compiler.inputs.string_literals import Written
from partita.compiler.inputs.tactic_calls import Call
from partita.compiler.notation.tactic_statements import statement
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.grammar import Word
from partita.dialects.layouts import parse_array
from partita.dialects.ranges.terms import Axis
from partita.dialects.ranges.text import parse_array_text, parse_range
from partita.rewrites.rules.parse import parse

X = jnp.ones((8, 4))
MESHES = pt.Mesh(data=2, model=2, pod=2, a=2, b=2), pt.Mesh(a=4).refine(a=(2, 2))
TRACE = "tile('x', 0, 'data')\nTile(values={'x': 1}, axis='model')\nreplicate('x', 'pod')"


def doubled(x: object) -> object:
    return pt.tag(x, "doubled")


def plan_file() -> object:
    lines = "tile x.0 @data\ntile range batch over model\nreplicate x @pod"
    program = pt.parse(f"mesh data=1, model=1, pod=1\nplan doubled {{\n{lines}\n}}\n")
    return program.mesh, program.blocks, [step for block in program.blocks.values() for step in block.steps]


def programs() -> object:
    """Of all examples; the trees of their plans are read later, and are not what a user gets."""
    found = [pt.load(path) for path in sorted((ROOT / "examples").glob("*.partita"))]
    return [(each.program.functions, each.program.order, each.mesh, each.blocks) for each in found]


def rules() -> object:
    return [parse(path.read_text(), path.name) for path in sorted((ROOT / "rewrites" / "rules").glob("*.rules"))]


def definitions() -> object:
    return parse_definitions((ROOT / "dialects" / "definitions" / "definitions.def").read_text())


def graph() -> object:
    module = Graph.parse(pt.plan(doubled, pt.Mesh(data=2), X).tile("x", 0, "data").lower("collective").text()).module
    return [(op.attributes, op.properties, [value.type for value in (*op.operands, *op.results)]) for op in module.walk()]


PARSERS: dict[str, Callable[[], object]] = {
    "ranges": lambda: [
        parse_range(text, *MESHES) for text in ("data*4 + 3", "t:8*win<1,3,1,0>(a.0:2*4)", "pad(data*4, 1, 1)[0:3:2]")
    ],
    "array types": lambda: [
        parse_array_text("f32[data*4, 8]{+model, max pod before 0}", *MESHES),
        parse_array("bf16[a*4 pad 7]{+b}", *MESHES),
    ],
    "definitions": definitions,
    "rules": rules,
    "programs": programs,
    "plan files": plan_file,
    "config files": lambda: [pt.tactics_from(ROOT / "examples" / "strategy.toml", table) for table in ("by_name", "in_a_text")],
    "statements": lambda: [statement(line) for line in TRACE.splitlines()],
    "calls": lambda: Call.read("at(['x'], Tile(values={'x': 0}, axis='data'))"),
    "traces": lambda: pt.replay(doubled, pt.Mesh(data=1, model=1, pod=1), TRACE, X).actions,
    "meshes": lambda: pt.Mesh.parse("data=4, pod=2 slow"),
    "graphs": graph,
    "literals": lambda: Written.of("foo(x)  out[i..] = x[i..]", None),
}


@pytest.mark.parametrize("parser", PARSERS)
def test_no_token_leaves_a_parser(parser: str):
    strings = [each for each in reachable(PARSERS[parser]()) if isinstance(each, str | Word | lark.Tree)]
    assert strings
    assert {type(each) for each in strings} == {str}


class Named(enum.StrEnum):
    DATA = "data"


@pytest.mark.parametrize("name", [np.str_("rows"), lark.Token("AXIS", "columns"), Named.DATA])
def test_what_is_interned_holds_plain_strings(name: str):
    mesh = pt.Mesh({name: 3, "other": 5})
    assert [type(axis) for axis in mesh] == [str, str]
    assert str(mesh) == f"{str.__str__(name)}=3, other=5"
    assert type(Axis(name, 3).name) is str


def test_a_mesh_that_a_plan_file_has_named_is_that_of_a_later_plan(tmp_path: Path):
    pt.plan(doubled, pt.Mesh(data=4), X).tile("x", 0, "data").save(tmp_path / "plan.partita")
    one = pt.Mesh(data=1)
    plan = pt.plan(doubled, one, X)
    for axis in one.axes:
        plan = plan.tile("x", 0, axis)
    assert plan.trace == "tile('x', 0, 'data')"
    plan.save(tmp_path / "one.partita")
    assert pt.replay(doubled, tmp_path / "one.partita", X).trace == plan.trace
