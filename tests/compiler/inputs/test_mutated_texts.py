"""A text with slips, in any language that Partita reads, is read or refused by an error of ours: nothing else is raised."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import contextlib
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from generated import examples
from hypothesis import given, strategies as st
from mutated import mutated
from root import ROOT

import partita as pt
from partita.compiler.cli import opt
from partita.compiler.graph.graph import Graph
from partita.compiler.inputs.tactic_calls import Call
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.layouts import parse_array
from partita.dialects.ranges.text import parse_range
from partita.rewrites.rules.parse import parse

MESH = pt.Mesh(data=4, model=2)
X, W = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((8, 6), (6, 8)))


def step(x: jax.Array, w: jax.Array) -> jax.Array:
    h = pt.tag(jnp.tanh(x @ w), "h")
    return jax.lax.fori_loop(0, 3, lambda _, y: y * 2 + h, h) @ w.T


@cache
def plan() -> pt.Plan:
    tactics = pt.Tile({"w": 1}, "model"), pt.at("h", pt.Tile({"h": 0}, "data"))
    tiled = pt.plan(step, MESH, X, W).tile("x", 0, "data").apply(*tactics)
    return tiled.replicate("h", "model").name("x", 1, "K").propagate("model")


@cache
def saved() -> str:
    with tempfile.TemporaryDirectory() as folder:
        plan().save(Path(folder) / "plan.partita")
        return (Path(folder) / "plan.partita").read_text()


def replayed(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.ReplayWarning)
        (Path(folder) / "plan.partita").write_bytes(text.encode())
        str(pt.replay(step, Path(folder) / "plan.partita", X, W))


CONFIG = """
tactics = [
  {name = "Tile", values = {x = 0}, axis = "data"},
  {name = "at", values = ["w"], tactic = {name = "ZeRO", stage = 3, axis = "model", params = "w"}},
]
"""


def configured(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "strategy.toml").write_bytes(text.encode())
        for table in ("", "by_name", "in_a_text"):
            with contextlib.suppress(pt.Error):
                plan().apply(*pt.tactics_from(Path(folder) / "strategy.toml", table))


def asked(text: str) -> None:
    """A graph that is read says all that a graph can say."""
    graph = Graph.parse(text)
    for ask in (str, repr, Graph.to_json, Graph.to_dot, Graph.counts, Graph.bytes_per_device, lambda graph: graph.edges):
        ask(graph)


def optimised(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        (Path(folder) / "program.mlir").write_bytes(text.encode())
        patch.setattr(sys, "argv", ["partita-opt", f"{folder}/program.mlir", "-p", "fuse,to-flow", "-o", f"{folder}/out.mlir"])
        try:
            opt.main()
        except SystemExit as ended:
            assert str(ended.code).startswith("error: ")


def rules() -> list[str]:
    return [path.read_text() for path in sorted((ROOT / "rewrites" / "rules").glob("*.rules"))]


def definitions() -> list[str]:
    """The shipped ones, a few at a time."""
    lines = (ROOT / "dialects" / "definitions" / "definitions.def").read_text().split("\n\n")
    return ["\n\n".join(lines[at : at + 3]) for at in range(0, len(lines), 3)]


MESHES = pt.Mesh(data=2, model=2, pod=2, a=2), pt.Mesh(a=4).refine(a=(2, 2))
LANGUAGES: dict[str, tuple[Callable[[], Sequence[str]], Callable[[str], object]]] = {
    "ranges": (
        lambda: ["data*4 + 3", "t:8*win<1,3,1,-1>(a.0:2*4)", "pad(data*4, 1, 1)[0:3:2]", "(2 + 3)*data of 8", "data*4 pad 7"],
        lambda text: parse_range(text, *MESHES),
    ),
    "array types": (
        lambda: ["f32[data*4, 8]{+model, max pod before 0}", "bf16[data*4 pad 7, win<8,10,1,1>(a)]"],
        lambda text: parse_array(text, *MESHES),
    ),
    "meshes": (lambda: ["data=4, model=2", "pod=2 slow, data.0=2, data.1=2"], pt.Mesh.parse),
    "constraints": (
        lambda: ["data, _", "data*model", "_, (data, model)"],
        lambda text: jax.eval_shape(lambda x: pt.constrain(x, text), X),
    ),
    "budgets": (lambda: ["<=2MiB", ">3", "<1_000.5kB"], lambda text: plan().expect(memory=text)),
    "definitions": (definitions, parse_definitions),
    "definitions of users": (
        lambda: ["twice(x)  out[i.., j:] = @(x[i.., j:])", "norm(x, w)  out[b.., d] = @(x[b.., d], w[d])"],
        lambda text: pt.define(text)(lambda x: x),
    ),
    "rules": (rules, parse),
    "rules of users": (lambda: ["twice: add(x, x) => mul(x, 2)", "f: mul(x, add(y, z)) => add(mul(x, y), mul(x, z))"], pt.rule),
    "calls": (lambda: plan().trace.splitlines(), Call.read),
    "traces": (lambda: [plan().trace], lambda text: pt.replay(step, MESH, text, X, W)),
    "plan files": (lambda: [saved()], replayed),
    "config files": (lambda: [(ROOT / "examples" / "strategy.toml").read_text(), CONFIG], configured),
    "patterns": (lambda: ["params/**/w[12]", r"a\/b*?", "h#0"], lambda text: plan().layout(text)),
    "graphs": (lambda: [plan().lower("collective").text(), plan().lower("whole").text()], asked),
    "partita-opt": (lambda: [str(plan().ir(fused=False)), str(plan().spmd())], optimised),
}


@pytest.mark.parametrize("language", LANGUAGES)
@given(seed=st.integers(0, 2**32))
@examples(30)
def test_a_text_with_slips_is_read_or_refused(language: str, seed: int):
    chance = random.Random(seed)
    texts, reads = LANGUAGES[language]
    try:
        reads(mutated(chance.choice(texts()), chance))
    except pt.Error as error:
        str(error)
