"""What a type checker sees: a `pt.jit` function keeps its parameters and its result, a plan and what it compiles the result."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from root import ROOT

USER = """
from typing import TypeAlias, assert_type

import jax
import partita as pt

Params: TypeAlias = dict[str, jax.Array]
Result: TypeAlias = tuple[Params, jax.Array]
MESH = pt.Mesh(data=4, model=2)


def train_step(params: Params, x: jax.Array, rate: float = 0.1) -> Result:
    return {name: p - rate * p for name, p in params.items()}, (x @ params["w"]).sum()


def batch_first(plan: pt.Plan) -> pt.Plan:
    return plan.tile("x", 0, "data")


step = pt.jit(train_step, mesh=MESH, tactics=[pt.DataParallel("data", inputs="x"), batch_first], donate_argnames="params")


@pt.jit(mesh=MESH, tactics=pt.tactics_from("strategy.toml"))
def model(params: Params, x: jax.Array) -> jax.Array:
    return x @ params["w"]


class Trainer:
    @pt.jit(mesh=MESH)
    def loss(self, x: jax.Array) -> jax.Array:
        return x.sum()


def right(params: Params, x: jax.Array) -> None:
    assert_type(step(params, x), Result)
    assert_type(step(params, x=x, rate=0.2), Result)
    assert_type(model(params, x), jax.Array)
    assert_type(Trainer().loss(x), jax.Array)
    plan = pt.plan(train_step, MESH, params, jax.ShapeDtypeStruct((8, 4), "float32"))
    assert_type(plan, pt.Plan[Result])
    assert_type(plan.tile("x", 0, "data").apply(pt.FSDP("data"), batch_first).expect(all_gather=0), pt.Plan[Result])
    assert_type(plan.compile(donate="params")(params, x), Result)
    assert_type(step.plan(params, x).compile()(params, x), Result)
    assert_type(pt.replay(train_step, MESH, plan.trace, params, x), pt.Plan[Result])
    assert_type(pt.tag(x, "x"), jax.Array)


def wrong(params: Params, x: jax.Array) -> None:
    step(params)  # reportCallIssue
    step(x, params)  # reportArgumentType
    step(params, x, speed=1.0)  # reportCallIssue
    step(params, x)[1].items()  # reportAttributeAccessIssue
    model(params, x, x)  # reportCallIssue
    Trainer().loss(x, x)  # reportCallIssue
    step.plan(params, x).compile()(params, x)[0].sum()  # reportAttributeAccessIssue
    pt.jit(train_step)  # reportCallIssue
    pt.jit(train_step, mesh=MESH, donate="params")  # reportCallIssue
    pt.jit(train_step, mesh=MESH, tactics=pt.FSDP("data"))  # reportArgumentType
    pt.tactics_from(MESH)  # reportArgumentType
"""
"""A file of a user. What is wrong on a line stands behind it, by the name of pyright's rule."""
SETTINGS = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "extraPaths": [str(ROOT / ".src")],
    # JAX annotates its functions only in part.
    "reportUnknownMemberType": False,
    "reportUnknownVariableType": False,
    "reportUnknownArgumentType": False,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What pyright reports."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "train.py").write_text(USER)
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    command = [
        str(Path(sys.executable).with_name("pyright")),
        "--outputjson",
        "--pythonpath",
        sys.executable,
        "-p",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    return json.loads(done.stdout)["generalDiagnostics"]


def test_each_wrong_call_is_reported_and_nothing_else(found: list[dict[str, Any]]) -> None:
    wanted = {number: said[1] for number, line in enumerate(USER.splitlines()) if (said := re.search(r"# (report\w+)$", line))}
    assert {each["range"]["start"]["line"]: each["rule"] for each in found} == wanted, found
