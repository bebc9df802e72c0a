"""The file of a saved program: a zip archive whose comment is the checksum of all bytes before it.

Large arrays that the program closes over are files in a folder beside it, named by their own checksums.

    step.partita-program            program.json, graph.mlir, kernels/0, kernels/1, ...
    step.partita-program.arrays/    4f2a....npy, ...
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, cast
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from ....dialects.ground.errors import Error
from ...inputs.files import STEP, path_of, reason_of, regular, shown_path

SMALL = 1 << 16
"""The most bytes of an array that is in the file itself."""

_DIGEST = 64
_BEGIN = b"PK\x03\x04"
_AGAIN = "save it again, or copy it again"


@dataclass(frozen=True)
class SavedFile:
    """The parts of a file, by name, and the arrays, of which large ones are read when they are needed."""

    path: Path
    parts: Mapping[str, bytes]
    arrays: Sequence[np.ndarray]


def written(file: object, parts: Mapping[str, bytes], arrays: Sequence[np.ndarray]) -> Path:
    """Writes a file, and the arrays. What was there before stays until all is written. Raises Error if it cannot be written."""
    path = path_of(file, "path", "step.partita-program")
    try:
        small = {number: _inside(array) for number, array in enumerate(arrays) if array.nbytes <= SMALL}
        names = [small[number][0] if number in small else _beside(path, array) for number, array in enumerate(arrays)]
        listed = "\n".join(f"{name} {array.dtype.name}" for name, array in zip(names, arrays, strict=True))
        data = _archive({**parts, "arrays": listed.encode(), **{f"arrays/{name}": own for name, own in small.values()}})
        made = path.with_name(f"{path.name}.{os.getpid()}")
        made.write_bytes(data)
        made.replace(path)
        folder = _folder(path)
        for each in folder.glob("?" * _DIGEST + ".npy") if folder.is_dir() else ():
            if each.stem not in names:
                each.unlink()
    except (OSError, ValueError) as error:
        helps = [f"the folder is {Path.cwd()}", "give the name of a file in a folder that exists"]
        raise Error(f"{shown_path(path)} cannot be written: {reason_of(error)}", helps=helps) from None
    return path


def read(file: object) -> SavedFile:
    """Reads a file. Raises Error for one that is damaged, or no saved program, or that lacks an array beside it."""
    path = regular(file, "give the name of a file that `save` wrote")
    try:
        _check(path)
        with ZipFile(path) as archive:
            parts = {each.filename: archive.read(each) for each in archive.infolist()}
        listed = map(str.split, parts.get("arrays", b"").decode().splitlines())
        arrays = [_read_array(path, name, dtype, parts) for name, dtype in listed]
    except OSError as error:
        raise Error(f"{shown_path(path)} cannot be read: {reason_of(error)}", helps=[_AGAIN]) from None
    return SavedFile(path, parts, arrays)


def _archive(parts: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with ZipFile(made, "w", ZIP_STORED) as archive:
        for name, data in parts.items():
            # With a fixed date, so that one program makes one file.
            archive.writestr(ZipInfo(name), data)
        archive.comment = b"0" * _DIGEST
    data = made.getvalue()[:-_DIGEST]
    return data + sha256(data).hexdigest().encode()


def _check(path: Path) -> None:
    """Raises Error for a file whose bytes are not those that were written."""
    with path.open("rb") as stream:
        if stream.read(len(_BEGIN)) != _BEGIN:
            title = f"{shown_path(path)} is no saved program: it does not begin as one"
            raise Error(title, helps=["give the name of a file that `save` wrote"])
        stream.seek(0)
        size = path.stat().st_size
        if _digest(stream, size - _DIGEST) != stream.read():
            raise _damaged(path)


def _digest(stream: IO[bytes], left: int) -> bytes:
    """The checksum of the next bytes of a stream, or of those that it has."""
    digest = sha256()
    while left > 0 and (more := stream.read(min(STEP, left))):
        digest.update(more)
        left -= len(more)
    return digest.hexdigest().encode()


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.name}.arrays")


def _write(stream: IO[bytes], array: np.ndarray) -> None:
    """Writes an array as a file of NumPy. Types that NumPy has not are written as plain bytes of their size."""
    np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)


def _inside(array: np.ndarray) -> tuple[str, bytes]:
    """The name of an array that is in the file itself, and its bytes there."""
    made = io.BytesIO()
    _write(made, array)
    return sha256(made.getvalue()).hexdigest(), made.getvalue()


def _beside(path: Path, array: np.ndarray) -> str:
    """Writes an array beside the file. Returns its name."""
    folder = _folder(path)
    folder.mkdir(exist_ok=True)
    made = folder / f"{os.getpid()}"
    with made.open("w+b") as stream:
        _write(stream, array)
        size = stream.tell()
        stream.seek(0)
        name = _digest(stream, size).decode()
    made.replace(folder / f"{name}.npy")
    return name


def _read_array(path: Path, name: str, dtype: str, parts: Mapping[str, bytes]) -> np.ndarray:
    """An array by its name and dtype. One beside the file is checked, and mapped to memory."""
    if (inside := parts.get(f"arrays/{name}")) is not None:
        return np.lib.format.read_array(io.BytesIO(inside), allow_pickle=False).view(dtype)
    beside = _folder(path) / f"{name}.npy"
    try:
        with beside.open("rb") as stream:
            found = _digest(stream, beside.stat().st_size).decode()
    except FileNotFoundError:
        title = f"{shown_path(path)} closes over an array that lies beside it, and {shown_path(beside)} is missing"
        raise Error(title, helps=["copy the folder with the file"]) from None
    if found != name:
        raise _damaged(beside)
    return cast(np.ndarray, np.load(beside, mmap_mode="r", allow_pickle=False)).view(dtype)


def _damaged(path: Path) -> Error:
    title = f"{shown_path(path)} is damaged: of its bytes some are missing, or are not those that were saved"
    return Error(title, helps=[_AGAIN])
