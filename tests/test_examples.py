"""The examples run and say what they promise; the demo in small, so that the tests stay fast."""

import pytest

from partita.examples import demo, gpt, mlp, moe, scan_layers


def test_the_shortest_example_equals_the_unpartitioned_function(capsys: pytest.CaptureFixture[str]) -> None:
    mlp.main()
    said = capsys.readouterr().out
    assert "'w2': 'f32[model*512, 256]'" in said
    assert float(said.rpartition(":")[2]) < 1e-4


def test_layers_in_a_scan_train_as_unpartitioned(capsys: pytest.CaptureFixture[str]) -> None:
    scan_layers.main()
    losses = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("loss")]
    assert len(losses) == 5
    for line in losses:
        assert float(line[1].rstrip(",")) == pytest.approx(float(line[3]), rel=1e-4)


def test_tokens_find_their_experts_on_other_devices(capsys: pytest.CaptureFixture[str]) -> None:
    moe.main()
    said = capsys.readouterr().out
    assert "'all_to_all': 4" in said
    _, loss, _, expected = said.splitlines()[-1].replace(",", "").split()
    assert float(loss) == pytest.approx(float(expected), rel=1e-4)


def test_the_demo_trains_and_the_losses_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(demo, "CONFIG", gpt.Config(length=16, layers=1, width=32))
    monkeypatch.setattr(demo, "STEPS", 6)
    assert demo.main() == 0
    said = capsys.readouterr().out
    assert "The losses agree" in said
    for name in demo.TACTICS:
        assert f"after {name}" in said
