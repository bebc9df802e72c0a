"""Files that a user names: regular ones, up to a bound; anything else is an error at once."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import os
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner

import partita as pt
from partita.compiler.cli.main import main
from partita.compiler.inputs import files
from partita.compiler.run.trial_run import read_arrays

X = jnp.ones((8, 4))
TEXT = "mesh a=2\nplan doubled {\n  tile x.0 @a\n}\n"


def doubled(x: object) -> object:
    return pt.tag(x, "h")


READERS: dict[str, Callable[[Path], object]] = {
    "load": pt.load,
    "config file": pt.tactics_from,
    "replay": lambda path: pt.replay(doubled, path, X),
    "replay on a mesh": lambda path: pt.replay(doubled, pt.Mesh(a=2), path, X),
    "arrays": lambda path: read_arrays([f"x={path}"]),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_device_a_pipe_and_a_folder_are_not_read(reader: str, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.partita")
    for path, said in (
        (Path("/dev/zero"), "no regular file"),
        (tmp_path / "pipe.partita", "no regular file"),
        (tmp_path, "a folder"),
    ):
        with pytest.raises(pt.Error, match=f"cannot be read: it is {said}"):
            READERS[reader](path)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "\ud800"])
@pytest.mark.parametrize("reader", READERS)
def test_a_name_that_no_file_can_have_is_an_error(reader: str, name: str):
    with pytest.raises(pt.Error) as caught:
        READERS[reader](Path(name))
    assert len(caught.value.title) < 200


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path):
    path = tmp_path / "large.partita"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(pt.Error, match="is too large: a text has at most 67,108,864 bytes"):
        pt.load(path)
    assert files.MOST_BYTES == 1 << 26


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path):
    path = tmp_path / "plan.partita"
    path.write_text(TEXT.replace("\n", "\r\n"), encoding="utf-8-sig", newline="")
    assert pt.replay(doubled, path, X).trace == "tile('x', 0, 'a')"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "No data left"), (b"\x93NUMPY\x01\x00v\x00", "cannot be read"), (b"PK\x03\x04", "cannot be read")],
)
def test_a_file_that_holds_no_array_is_an_error(content: bytes, said: str, tmp_path: Path):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(pt.Error, match=said):
        read_arrays([f"x={tmp_path / 'x.npy'}"])


def test_an_array_that_is_larger_than_its_file_is_an_error(tmp_path: Path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones(3, np.float32))
    path.write_bytes(path.read_bytes().replace(b"(3,), ", b"(3" + b"0" * 15 + b",), ", 1).replace(b" " * 15, b"", 1))
    with pytest.raises(pt.Error, match="cannot be read"):
        read_arrays([f"x={path}"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "/dev/zero"],
        ["show", "/dev/zero:f", "f32[8]", "--mesh", "a=2"],
        ["run", "/dev/zero.partita"],
        ["rules", "/dev/null.py"],
        ["lower", "/dev"],
        ["explain", "/dev:f", "--value", "x"],
    ],
)
def test_the_command_line_reads_no_device(arguments: list[str]):
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
