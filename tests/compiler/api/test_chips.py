"""The chip of a plan's mesh is in each of its texts, and what is read from a text is a plan for that chip."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from click.testing import CliRunner
from lowered import lowers_from_its_decisions
from mlir_files import opt

import partita as pt
from partita.compiler.cli.main import main
from partita.compiler.plan import lowering

MESH = pt.Mesh(data=8, chip="H100")
X = jax.ShapeDtypeStruct((8192, 1 << 16), jnp.float32)

PROGRAM = """
import jax
import jax.numpy as jnp

def scaled(x):
    table = jnp.exp(jax.lax.broadcasted_iota(jnp.float32, x.shape, 0))
    return x * table, jnp.sum(table, 0)
"""


def scaled(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Devices of the default chip all compute all of the table; an H100 computes a part of it, and they reduce its sum."""
    table = jnp.exp(jax.lax.broadcasted_iota(jnp.float32, x.shape, 0))
    return x * table, jnp.sum(table, 0)


def planned(mesh: pt.Mesh = MESH) -> pt.Plan:
    return pt.plan(scaled, mesh, X).tile("x", 0, "data")


def test_a_plan_shows_its_chip() -> None:
    assert str(planned()).startswith("Plan of scaled on data=8, chip=H100: 1 tactic")
    assert str(planned(pt.Mesh(data=8))).startswith("Plan of scaled on data=8: 1 tactic")


def test_a_saved_plan_is_replayed_on_its_chip(tmp_path: Path) -> None:
    plan, file = planned(), tmp_path / "plan.partita"
    plan.save(file)
    assert file.read_text().startswith("mesh data=8, chip=H100\n")
    again = pt.replay(scaled, file, X)
    assert again.mesh is MESH and again.counts() == plan.counts() != planned(pt.Mesh(data=8)).counts()
    assert pt.replay(scaled, pt.Mesh(data=8), plan.trace, X).counts() == planned(pt.Mesh(data=8)).counts()


def test_a_program_in_index_notation_names_its_chip() -> None:
    text = pt.plan(jnp.sin, MESH, jax.ShapeDtypeStruct((8,), jnp.float32)).notation()
    assert text.startswith("mesh data=8, chip=H100\n") and pt.parse(text).plan().mesh is MESH
    assert pt.parse(text.replace("data=8, chip=H100", "chip=8, chip=v5p")).plan().mesh is pt.Mesh({"chip": 8}, chip="v5p")


@pytest.mark.parametrize(("size", "said"), [("v5", "`v5` is not a chip"), ("v4, chip=v4", "names its chip twice")])
def test_a_program_in_index_notation_whose_chip_is_none_is_an_error(size: str, said: str) -> None:
    with pytest.raises(pt.Error, match=said):
        pt.parse(f"mesh data=8, chip={size}\nfn f(x: f32[B=8]) -> f32[B] {{\n  return x\n}}\n")


def test_a_program_in_index_notation_says_how_much_memory_a_plan_may_use() -> None:
    text = "mesh data=8, chip=H100, memory=12GiB\nfn f(x: f32[B=8]) -> f32[B] {\n  return x\n}\n"
    plan = pt.parse(text).plan()
    assert plan.mesh is pt.Mesh(data=8, chip="H100", memory="12GiB")
    assert pt.parse(pt.parse(text).text).plan().mesh is plan.mesh
    with pytest.raises(pt.Error, match="mesh axis `memory` has size 12xyz"):
        pt.parse(text.replace("12GiB", "12xyz"))


def test_decisions_of_a_text_are_those_for_its_chip() -> None:
    plan = planned()
    claims = str(lowering.claims(plan))
    assert 'array.mesh = "data=8, chip=H100"' in claims and "all_reduce" in opt(["-p", "decide"], claims)
    assert "all_reduce" not in opt(["-p", "decide"], claims.replace(", chip=H100", ""))
    lowers_from_its_decisions(plan)


def test_axes_that_a_tactic_splits_are_those_of_the_same_chips() -> None:
    plan = pt.plan(scaled, MESH, X).tile("x", 0, "data.0:2")
    assert str(plan.mesh) == "data.0=2, data.1=4, chip=H100" and plan.mesh.whole() is MESH


def test_the_command_line_takes_a_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)

    def shown(mesh: str) -> str:
        arguments = ["show", "mine.py:scaled", "f32[8192,65536]", "--mesh", mesh, "-t", "tile('x', 0, 'data')"]
        return CliRunner().invoke(main, arguments).output

    assert "all_reduce" in shown("data=8,chip=H100") and "all_reduce" not in shown("data=8")
    assert "did you mean `H100`?" in shown("data=8,chip=h100")


def test_the_shell_takes_a_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    arguments = ["shell", "mine.py:scaled", "f32[8192,65536]", "--mesh", "data=8,chip=H100"]
    said = CliRunner().invoke(main, arguments, input="tile x.0 @data\ncounts\n").output
    assert "data=8 chip=H100" in said and "all_reduce" in said


def test_the_report_names_the_chip(tmp_path: Path) -> None:
    planned().html(tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert "<title>scaled on data=8, chip=H100</title>" in page
