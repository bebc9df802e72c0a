"""Reads and writes files that a user names. Errors name the file.

Only regular files are read, and only up to a bound, so that a device or a pipe in place of a file is an error at once.
"""

import stat
from pathlib import Path
from typing import IO

from ...dialects.ground.errors import Error
from .checks import refused, shown

MOST_BYTES = 1 << 26
"""The most bytes of a text file. A plan of 10,000 arrays has two million."""
STEP = 1 << 20
"""The number of bytes that are read at a time."""


def regular(file: object, help: str) -> Path:
    """The path of an existing regular file. Raises Error if there is none, and for a folder, a device or a pipe."""
    path = path_of(file)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise Error(f"no such file: {shown_path(path)}", helps=[f"{help}; the folder is {Path.cwd()}"]) from None
    except (OSError, ValueError) as error:
        raise Error(f"{shown_path(path)} cannot be read: {reason_of(error)}", helps=[help]) from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise Error(f"{shown_path(path)} cannot be read: it is {kind}", helps=[help])
    return path


def read_text(file: str | Path) -> str:
    """Reads a text file. Raises Error if it cannot be read."""
    path = regular(file, "give the name of a text file in UTF-8")
    try:
        with path.open("rb") as stream:
            found = bounded(stream, str(path))
        # Some editors begin a file with a mark of its encoding.
        return found.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"{shown_path(path)} cannot be read: {error}", helps=["give the name of a text file in UTF-8"]) from None


def bounded(stream: IO[bytes], file: str) -> bytes:
    """Reads a whole stream. Raises Error if it holds more than `MOST_BYTES` bytes."""
    found = bytearray()
    # Python allocates all that a read may return, so one read of the bound would take as much for the smallest file.
    while len(found) <= MOST_BYTES and (more := stream.read(STEP)):
        found += more
    if len(found) > MOST_BYTES:
        raise Error(f"`{file}` is too large: a text has at most {MOST_BYTES:,} bytes")
    return bytes(found)


def write_text(file: str | Path, text: str) -> None:
    """Writes a text file. Raises Error if it cannot be written."""
    path = path_of(file)
    try:
        # What no encoding has, such as half of a surrogate pair in a source line, is written as Python writes it.
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        helps = [f"the folder is {Path.cwd()}", "give the name of a file in a folder that exists"]
        raise Error(f"{shown_path(path)} cannot be written: {reason_of(error)}", helps=helps) from None


def is_folder(path: Path) -> bool:
    """Whether there is a folder with this name. False for a text that cannot be a name."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def reason_of(error: OSError | ValueError) -> str:
    """The reason why a file cannot be used, in words: `No such file or directory`, `embedded null byte`."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def shown_path(path: Path) -> str:
    """A path as errors show it. If it cannot be a file's name, such as a whole text, only its beginning is shown."""
    return f"`{path}`" if len(str(path)) < 1000 and str(path).isprintable() else shown(str(path))


def path_of(file: object, name: str = "file", example: str = "plan.partita") -> Path:
    """The path that names a file. Raises Error for a value that cannot."""
    if not isinstance(file, str | Path) or not len(file if isinstance(file, str) else str(file)):
        raise refused(name, "the name of a file", file, f'write it as a string: "{example}"')
    return Path(str.__str__(file)) if isinstance(file, str) else file
