"""Writes the page: puts a plan's data into the built page `page.html`, as one file that needs nothing else.

The data is JSON, compressed and in base64, so no text of a program can end the element that holds it, and a large program makes
a page of a few megabytes.
"""

import base64
import gzip
import json
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path

from ...dialects.ground.errors import Error
from ..gc_pause import without_collector
from ..inputs.files import is_folder, path_of, write_text
from ..plan.state import State
from .data import data


@dataclass(frozen=True)
class Page:
    """A page that a notebook shows in a frame of this height, in pixels."""

    html: str = field(repr=False)
    height: int

    def __repr__(self) -> str:
        return 'a page, which a notebook shows; plan.html("plan.html") writes it for a browser'

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 1px solid #8888"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'


DATA, TITLE = "%partita-data%", "%partita-title%"
"""The texts in `page.html` that the data and the title replace."""


def write(plan: State, path: str | Path) -> None:
    """Writes the page of a plan to a file. Raises Error for a path that cannot be written."""
    target = _target(path)
    write_text(target, html(plan))


def html(plan: State) -> str:
    """The HTML text of a plan's page. Equal plans give equal texts."""
    page = (files(__package__ or "") / "page.html").read_text(encoding="utf-8")
    before, rest = page.split(TITLE)
    middle, after = rest.split(DATA)
    with without_collector():
        found = packed(data(plan))
    return "".join([before, escape(f"{plan.source.traced.name} on {plan.mesh.whole()}"), middle, found, after])


def packed(found: object) -> str:
    """Encodes an object as JSON, compressed and in base64."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), check_circular=False)
    return base64.b64encode(gzip.compress(text.encode(errors="backslashreplace"), compresslevel=3, mtime=0)).decode()


def _target(path: object) -> Path:
    target = path_of(path, "path", "plan.html")
    if is_folder(target):
        raise Error(f"`{target}` is a folder", helps=[f'name a file in it: plan.html("{target / "plan.html"}")'])
    if target.suffix.lower() not in (".html", ".htm"):
        name = target.with_suffix(".html")
        raise Error(f"`{target}` does not end in .html", helps=[f'a browser knows a page by that: plan.html("{name}")'])
    if not is_folder(target.parent):
        helps = [f"make the folder first: mkdir -p {target.parent}"]
        raise Error(f"`{target}` cannot be written: there is no folder `{target.parent}`", helps=helps)
    return target
