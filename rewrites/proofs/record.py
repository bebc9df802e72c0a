"""The record of what is known: each law is proved once, and all that show or check it read the same verdict.

It is kept by this process. Processes that prove laws side by side share a folder, which is made for them and is empty at first:
there, what one has proved is known to the others.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache, wraps
from hashlib import sha256
from os import getpid
from pathlib import Path
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])

_shared: list[Path] = []


def share(folder: Path) -> None:
    """Shares what is proved from now on with all processes that share this folder."""
    _shared[:] = [folder]


# Any: the functions are of any laws.
def recorded(prove: _F) -> _F:
    """Lets a function find out once what is known of a law. Its arguments, as text, say which law it is."""

    @cache
    @wraps(prove)
    def known(*args: object) -> Any:
        if not _shared:
            return prove(*args)
        law = f"{prove.__module__}.{prove.__qualname__} {args}"
        file = _shared[0] / sha256(law.encode()).hexdigest()
        if not file.exists():
            whole = file.with_suffix(f".{getpid()}")
            whole.write_bytes(pickle.dumps((law, prove(*args))))
            whole.rename(file)
        of, found = pickle.loads(file.read_bytes())
        assert of == law
        return found

    return cast("_F", known)
