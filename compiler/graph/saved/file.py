"""The file of a saved program: a zip archive whose comment is the checksum of all bytes before it.

Large arrays that the program closes over are files in a folder beside it, named by their own checksums.

    step.partita-program            program.json, graph.mlir, kernels/0, kernels/1, ...
    step.partita-program.arrays/    4f2a....npy, ...
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import IO, cast
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from ....dialects.ground.errors import Error
from ...inputs.files import STEP, path_of, reason_of, regular, shown_path

SMALL = 1 << 16
"""The most bytes of an array that is in the file itself."""
TRIES = 3
"""How often a file is read that is saved again meanwhile, and its arrays with it."""

_DIGEST = 64
_BEGIN = b"PK\x03\x04"
_EXAMPLE = "step.partita-program"
_AGAIN = "save it again, or copy it again"


@dataclass(frozen=True)
class SavedFile:
    """The parts of a file, by name, and the arrays, of which large ones are read when they are needed."""

    path: Path
    parts: Mapping[str, bytes]
    arrays: Sequence[np.ndarray]


def written(file: object, parts: Mapping[str, bytes], arrays: Sequence[np.ndarray]) -> Path:
    """Writes a file, and the arrays. What was there before stays until all is written. Raises Error if it cannot be written."""
    path = path_of(file, "path", _EXAMPLE)
    try:
        path = path.resolve()
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            title = f"{shown_path(path)} cannot be written: it is {'a folder' if path.is_dir() else 'no regular file'}"
            raise Error(title, helps=["give the name of a file, new or saved before"])
        small = {number: _inside(array) for number, array in enumerate(arrays) if array.nbytes <= SMALL}
        names = [small[number][0] if number in small else _beside(path, array) for number, array in enumerate(arrays)]
        listed = "\n".join(f"{name} {array.dtype.name}" for name, array in zip(names, arrays, strict=True))
        data = _archive({**parts, "arrays": listed.encode(), **{f"arrays/{name}": own for name, own in small.values()}})
        with _replacing(path, lambda: path) as stream:
            stream.write(data)
        folder = _folder(path)
        for each in folder.glob("?" * _DIGEST + ".npy") if folder.is_dir() else ():
            if each.stem not in names:
                each.unlink(missing_ok=True)
    except (OSError, ValueError, RuntimeError) as error:
        helps = [f"the folder is {Path.cwd()}", "give the name of a file in a folder that exists"]
        reason = reason_of(error) if isinstance(error, OSError | ValueError) else error
        raise Error(f"{shown_path(path)} cannot be written: {reason}", helps=helps) from None
    return path


def read(file: object) -> SavedFile:
    """Reads a file. Raises Error for one that is damaged, or no saved program, or that lacks an array beside it."""
    path = regular(path_of(file, "path", _EXAMPLE), "give the name of a file that `save` wrote")
    data = _checked(path)
    for _ in range(TRIES):
        try:
            return _read(path, data)
        except FileNotFoundError as missing:
            # Saved again meanwhile, it has other arrays.
            before, data = data, _checked(path)
            if data == before:
                beside = shown_path(Path(str(missing.filename)))
                title = f"{shown_path(path)} closes over an array that lies beside it, and {beside} is missing"
                raise Error(title, helps=["copy the folder with the file"]) from None
        except OSError as error:
            raise Error(f"{shown_path(path)} cannot be read: {reason_of(error)}", helps=[_AGAIN]) from None
    raise Error(f"{shown_path(path)} is saved again and again, and cannot be read meanwhile", helps=["load it later"])


def _read(path: Path, data: bytes) -> SavedFile:
    with ZipFile(io.BytesIO(data)) as archive:
        listed = archive.infolist()
        if any(each.compress_type != ZIP_STORED for each in listed):
            raise ValueError("parts are compressed")
        parts = {each.filename: archive.read(each) for each in listed}
    rows = map(str.split, parts["arrays"].decode().splitlines())
    return SavedFile(path, parts, [_read_array(path, name, dtype, parts) for name, dtype in rows])


def _archive(parts: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with ZipFile(made, "w", ZIP_STORED) as archive:
        for name, data in parts.items():
            # With a fixed date, so that one program makes one file.
            archive.writestr(ZipInfo(name), data)
        archive.comment = b"0" * _DIGEST
    data = made.getvalue()[:-_DIGEST]
    return data + sha256(data).hexdigest().encode()


def _checked(path: Path) -> bytes:
    """The bytes of a file. Raises Error if they are not those that were written."""
    try:
        with path.open("rb") as stream:
            if stream.read(len(_BEGIN)) != _BEGIN:
                title = f"{shown_path(path)} is no saved program: it does not begin as one"
                raise Error(title, helps=["give the name of a file that `save` wrote"])
            data = _BEGIN + stream.read()
    except OSError as error:
        raise Error(f"{shown_path(path)} cannot be read: {reason_of(error)}", helps=[_AGAIN]) from None
    if sha256(data[:-_DIGEST]).hexdigest().encode() != data[-_DIGEST:]:
        raise _damaged(path)
    return data


@contextmanager
def _replacing(path: Path, name: Callable[[], Path]) -> Generator[IO[bytes]]:
    """A context in which a file is written beside another, whose place it takes at the end if all went well."""
    made = path.with_name(f"{path.name}.{os.getpid()}.{get_ident()}")
    try:
        with made.open("w+b") as stream:
            yield stream
        made.replace(name())
    finally:
        made.unlink(missing_ok=True)


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.name}.arrays")


def _write(stream: IO[bytes], array: np.ndarray) -> None:
    """Writes an array as a file of NumPy: elements of its size, since NumPy has not all types. The type is said elsewhere."""
    bare = np.asarray(array, order="C").view(f"V{array.dtype.itemsize}")
    np.lib.format.write_array(stream, bare, allow_pickle=False)


def _inside(array: np.ndarray) -> tuple[str, bytes]:
    """The name of an array that is in the file itself, and its bytes there."""
    made = io.BytesIO()
    _write(made, array)
    return sha256(made.getvalue()).hexdigest(), made.getvalue()


def _beside(path: Path, array: np.ndarray) -> str:
    """Writes an array beside the file. Returns its name."""
    folder, found = _folder(path), list[str]()
    folder.mkdir(exist_ok=True)
    with _replacing(folder / "array", lambda: folder / f"{found[0]}.npy") as stream:
        _write(stream, array)
        stream.seek(0)
        found.append(_digest(stream))
    return found[0]


def _digest(stream: IO[bytes]) -> str:
    """The checksum of a file."""
    digest = sha256()
    while more := stream.read(STEP):
        digest.update(more)
    return digest.hexdigest()


def _read_array(path: Path, name: str, dtype: str, parts: Mapping[str, bytes]) -> np.ndarray:
    """An array by its name and dtype. One beside the file is checked, and mapped to memory."""
    if (inside := parts.get(f"arrays/{name}")) is not None:
        return np.lib.format.read_array(io.BytesIO(inside), allow_pickle=False).view(dtype)
    beside = _folder(path) / f"{name}.npy"
    with beside.open("rb") as stream:
        if _digest(stream) != name:
            raise _damaged(beside)
    return cast(np.ndarray, np.load(beside, mmap_mode="r", allow_pickle=False)).view(dtype)


def _damaged(path: Path) -> Error:
    title = f"{shown_path(path)} is damaged: of its bytes some are missing, or are not those that were saved"
    return Error(title, helps=[_AGAIN])
