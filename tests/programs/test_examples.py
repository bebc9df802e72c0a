"""The examples run and print what they promise; the demo runs with small sizes."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from documents import users_environment
from root import ROOT

from partita.examples import (
    annotated_gpt,
    decode,
    demo,
    gpt,
    graph_network,
    heat,
    llama,
    lstm,
    mlp,
    moe,
    scan_layers,
    vocabulary,
)


def test_the_shortest_example_equals_the_unpartitioned_function(capsys: pytest.CaptureFixture[str]) -> None:
    mlp.main()
    said = capsys.readouterr().out
    assert "'w2': 'f32[model*512, 256]'" in said
    assert float(said.rpartition(":")[2]) < 1e-4


def test_a_sharded_transformer_is_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    annotated_gpt.main()
    said = capsys.readouterr().out
    assert "58 of 58 annotations applied" in said
    ours, theirs = said.splitlines()[-1].removeprefix("loss ").split(", jax.jit ")
    assert float(ours) == pytest.approx(float(theirs), rel=1e-4)


@pytest.mark.parametrize("example", [scan_layers, moe, graph_network, lstm, vocabulary, llama], ids=lambda each: each.__name__)
def test_a_model_trains_as_unpartitioned(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(llama, "SIZES", llama.Config(vocabulary=131, layers=2))
    example.main()
    losses = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("loss")]
    assert losses
    for line in losses:
        assert float(line[1].rstrip(",")) == pytest.approx(float(line[3]), rel=1e-4)


def test_heat_spreads_as_unpartitioned_with_fewer_permutes_if_widened(capsys: pytest.CaptureFixture[str]) -> None:
    heat.main()
    exchanged, widened = capsys.readouterr().out.splitlines()
    assert exchanged.startswith(f"exchanged: {2 * heat.STEPS * heat.TRIPS} permutes")
    assert widened.startswith(f"widened: {2 * heat.TRIPS} permutes")
    assert max(float(line.rpartition(" ")[2]) for line in (exchanged, widened)) < 1e-4


def test_decoding_gives_the_same_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    decode.main()
    assert capsys.readouterr().out.count("the same tokens as unpartitioned: True") == 2 * len(decode.WAYS)


def test_the_demo_trains_and_the_losses_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(demo, "CONFIG", gpt.Config(length=16, layers=1, width=32))
    monkeypatch.setattr(demo, "STEPS", 6)
    assert demo.main() == 0
    said = capsys.readouterr().out
    for name in demo.TACTICS:
        assert f"{name} changes the layouts" in said
    # From the two runs on it fits a screen: the memory after each tactic, the collectives by cause, the next step.
    last = said[said.index("1 device, unpartitioned") :]
    assert len(last.splitlines()) <= 32
    for each in ("The losses agree", "stored at the peak", "no tactic (one device)", "data parallel and ZeRO-3", "Next: "):
        assert each in last


PROGRAMS = [file.stem for file in Path(decode.__file__).parent.glob("*.py") if "def main()" in file.read_text()]


def test_an_example_that_is_run_alone_can_still_ask_for_eight_devices() -> None:
    """The tests have eight devices from the start. A user has one until `main` asks, which must come before any array."""
    imports = "; ".join(f"import partita.examples.{name}" for name in PROGRAMS)
    asks = f"{imports}; import jax; jax.config.update('jax_num_cpu_devices', 8); assert jax.device_count() == 8"
    alone = users_environment() | {"JAX_PLATFORMS": "cpu"}
    found = subprocess.run([sys.executable, "-c", asks], env=alone, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_the_docs_name_the_command_for_every_example() -> None:
    docs = ROOT / "docs"
    said = "".join((docs / page).read_text() for page in ("parallelism.md", "models.md"))
    assert [name for name in PROGRAMS if f"`python -m examples.{name}`" not in said] == []
