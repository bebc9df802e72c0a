"""For any bad input, `partita-opt` ends with one error and exit status 1."""

import sys
from pathlib import Path

import pytest

from partita.compiler.cli import opt

FUNCTION = "func.func @f(%x: !array.array<f32[8]>) -> !array.array<f32[{}]> {{ func.return %x : !array.array<f32[8]> }}"


@pytest.mark.parametrize(
    ("content", "args", "message"),
    [
        (b"func.func @f( {", (), "error: "),
        (b"nonsense.op", (), "error: "),
        (b'"' + b"a" * 1000, (), "does not end on its line"),
        (b"\xff\xfe", (), "is not a text in UTF-8"),
        (FUNCTION.format(9).encode(), (), "note: the op is `"),
        (b"", ("-p", "lower"), "unknown pass `lower`"),
        (b"", ("-p", "fus"), "did you mean `fuse`?"),
        (b"", ("-p", "fuse{"), "cannot be read"),
        (b"", ("-p", "to-flow{size=1}"), "cannot be read"),
        (b"", ("-p", "to-flow{granularity=1}"), "cannot be read"),
        (FUNCTION.format(8).encode(), ("-p", 'to-flow{granularity="x"}'), "granularity"),
        (b"builtin.module {}", ("-p", "fuse"), "takes a module that begins with its `func.func`"),
        (b"", ("-t", "mlir{"), "error: "),
        (b"", ("-o", "/no/such/folder/x"), "cannot be written"),
    ],
)
def test_bad_input_is_one_error(
    content: bytes,
    args: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    file = tmp_path / "program.mlir"
    file.write_bytes(content)
    assert message in refused(monkeypatch, str(file), *args)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.mlir", "no such file"),
        (".", "it is a folder"),
        ("program.text", "cannot be read"),
        ("/dev/zero", "it is no regular file"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_error(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "program.text").write_text("")
    assert said in refused(monkeypatch, str(tmp_path / name))


def test_the_docstring_names_existing_passes():
    line = next(line for line in (opt.__doc__ or "").splitlines() if " -p " in line)
    assert set(line.split()[-1].split(",")) <= set(opt.PASSES)


def test_help_is_not_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", ["partita-opt", "--help"])
    with pytest.raises(SystemExit) as ended:
        opt.main()
    assert ended.value.code == 0
    assert "to-spmd" in capsys.readouterr().out


def refused(monkeypatch: pytest.MonkeyPatch, *args: str) -> str:
    """The output of the command; the text of a SystemExit goes to stderr, with exit status 1."""
    monkeypatch.setattr(sys, "argv", ["partita-opt", *args])
    with pytest.raises(SystemExit) as ended:
        opt.main()
    assert isinstance(ended.value.code, str)
    assert ended.value.code.startswith("error: ")
    return ended.value.code
