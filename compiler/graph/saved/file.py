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
from typing import cast
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
        names = [_written_array(path, array) for array in arrays]
        inside = {f"arrays/{name}": _bytes(array) for name, array in zip(names, arrays, strict=True) if array.nbytes <= SMALL}
        listed = "\n".join(f"{name} {array.dtype.name}" for name, array in zip(names, arrays, strict=True))
        data = _archive({**parts, "arrays": listed.encode(), **inside})
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
        arrays = [_read_array(path, line.split(), parts) for line in parts.get("arrays", b"").decode().splitlines()]
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
    digest = sha256()
    with path.open("rb") as stream:
        size = path.stat().st_size
        begin = stream.read(len(_BEGIN))
        if begin != _BEGIN:
            title = f"{shown_path(path)} is no saved program: it does not begin as one"
            raise Error(title, helps=["give the name of a file that `save` wrote"])
        digest.update(begin)
        left = size - _DIGEST - len(_BEGIN)
        while left > 0 and (more := stream.read(min(STEP, left))):
            digest.update(more)
            left -= len(more)
        if left != 0 or stream.read() != digest.hexdigest().encode():
            title = f"{shown_path(path)} is damaged: of its {size:,} bytes some are missing, or not those that were saved"
            raise Error(title, helps=[_AGAIN])


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.name}.arrays")


def _bytes(array: np.ndarray) -> bytes:
    """The array as a file of NumPy. Types that NumPy has not are written as plain bytes of their size."""
    made = io.BytesIO()
    np.lib.format.write_array(made, np.asarray(array, order="C"), allow_pickle=False)
    return made.getvalue()


def _digest(array: np.ndarray) -> str:
    """The checksum of an array: of its bytes, its type and its shape."""
    digest = sha256(np.asarray(array, order="C").reshape(-1).view(np.uint8).data)
    digest.update(f"{array.dtype.name} {array.shape}".encode())
    return digest.hexdigest()


def _written_array(path: Path, array: np.ndarray) -> str:
    """The name of an array; one that is large is written beside the file."""
    name = _digest(array)
    if array.nbytes > SMALL:
        folder = _folder(path)
        folder.mkdir(exist_ok=True)
        made = folder / f"{name}.{os.getpid()}"
        with made.open("wb") as stream:
            np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)
        made.replace(folder / f"{name}.npy")
    return name


def _read_array(path: Path, named: Sequence[str], parts: Mapping[str, bytes]) -> np.ndarray:
    """An array by its name and dtype. One beside the file is mapped to memory, and its bytes are checked."""
    name, dtype = named
    if (inside := parts.get(f"arrays/{name}")) is not None:
        return np.lib.format.read_array(io.BytesIO(inside), allow_pickle=False).view(dtype)
    beside = _folder(path) / f"{name}.npy"
    try:
        # Any: NumPy does not say that it returns an array.
        found = cast(np.ndarray, np.load(beside, mmap_mode="r", allow_pickle=False)).view(dtype)
    except FileNotFoundError:
        title = f"{shown_path(path)} closes over an array that lies beside it, and {shown_path(beside)} is missing"
        raise Error(title, helps=["copy the folder with the file"]) from None
    except (ValueError, EOFError):
        raise _damaged(beside) from None
    if _digest(found) != name:
        raise _damaged(beside)
    return found


def _damaged(path: Path) -> Error:
    return Error(f"{shown_path(path)} is damaged: its bytes are not those that were saved", helps=[_AGAIN])
