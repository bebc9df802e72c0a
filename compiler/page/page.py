"""Puts data into the built page `page.html`, as one file that needs nothing else, and writes it.

The data is JSON, compressed and in base64, so no text of a program can end the element that holds it, and a large program makes
a page of a few megabytes.
"""

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path

from ...dialects.ground.errors import Error
from ..inputs.files import is_folder, path_of, write_text

DATA, TITLE = "%partita-data%", "%partita-title%"
"""The texts in `page.html` that the data and the title replace."""


@dataclass(frozen=True)
class Page:
    """A page that a notebook shows in a frame of this height, in pixels. `of` is what it shows: a plan or a graph."""

    html: str = field(repr=False)
    height: int
    of: str = "plan"

    def __repr__(self) -> str:
        return f'a page, which a notebook shows; {self.of}.html("{self.of}.html") writes it for a browser'

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 1px solid #8888"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'


def filled(title: str, found: object) -> str:
    """The HTML text of a page with this title and these data. Equal ones give equal texts."""
    page = (files(__package__ or "") / "page.html").read_text(encoding="utf-8")
    before, rest = page.split(TITLE)
    middle, after = rest.split(DATA)
    return "".join([before, escape(title), middle, packed(found), after])


def packed(found: object) -> str:
    """Encodes an object as JSON, compressed and in base64."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), check_circular=False)
    return base64.b64encode(gzip.compress(text.encode(errors="backslashreplace"), compresslevel=3, mtime=0)).decode()


def written(path: object, made: Callable[[], str], of: str) -> None:
    """Writes a page to a file. Raises Error, before it is made, for a path that cannot be written; `of` is what it shows."""
    target = _target(path, of)
    write_text(target, made())


def _target(path: object, of: str) -> Path:
    target = path_of(path, "path", f"{of}.html")
    if is_folder(target):
        raise Error(f"`{target}` is a folder", helps=[f'name a file in it: {of}.html("{target / f"{of}.html"}")'])
    if target.suffix.lower() not in (".html", ".htm"):
        name = target.with_suffix(".html")
        raise Error(f"`{target}` does not end in .html", helps=[f'a browser knows a page by that: {of}.html("{name}")'])
    if not is_folder(target.parent):
        helps = [f"make the folder first: mkdir -p {target.parent}"]
        raise Error(f"`{target}` cannot be written: there is no folder `{target.parent}`", helps=helps)
    return target
