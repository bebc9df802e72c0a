"""Text files that a user names: read and written, with errors that name the file."""

from pathlib import Path

from ...dialects.errors import Error
from .checks import shown


def read_text(file: str | Path) -> str:
    """The text of a file. Raises Error if it cannot be read."""
    path = _path(file)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Error(f"no such file: `{file}`", helps=[f"the folder is {Path.cwd()}"]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"`{file}` cannot be read: {error}", helps=["a program is a text file in UTF-8"]) from None


def write_text(file: str | Path, text: str) -> None:
    """Writes a file. Raises Error if that is not possible."""
    path = _path(file)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        helps = [f"the folder is {Path.cwd()}", "give the name of a file in a folder that exists"]
        raise Error(f"`{file}` cannot be written: {error.strerror}", helps=helps) from None


def _path(file: object) -> Path:
    if not isinstance(file, str | Path):
        raise Error(f"expected the name of a file, got {shown(file)}", helps=['write it as a string: "plan.partita"'])
    return Path(file)
