"""The page as a file: whole, safe, built from the sources beside it, and written only where it can be."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from report_plans import WORD, planned
from root import ROOT

import partita as pt
from partita.compiler.cli.main import main
from partita.compiler.report.page import html

ROOM = ROOT / "compiler" / "page"
SOURCES = ROOT / "page"


def packed(page: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script id="partita-data" type="application/octet-stream">([^<]*)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(found)))


def test_a_page_is_one_file_that_asks_for_no_other() -> None:
    page = html(planned("a conflict"))
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert "default-src 'none'" in page
    assert not re.search(r"<(?:link|img|iframe)[^>]+(?:href|src)=[\"'](?!data:)", page)
    assert not re.search(r"<script[^>]+src=", page)
    assert "%partita" not in page


def test_no_name_ends_an_element_of_the_page() -> None:
    page = html(planned("names"))
    assert page.count("</script>") == 2 and WORD not in page
    assert any("größe" in text for text in packed(page)["texts"])


def test_a_page_has_no_folder_of_the_machine() -> None:
    assert str(ROOT) not in json.dumps(packed(html(planned("a training step"))))


def test_the_page_is_built_from_the_sources_beside_it() -> None:
    """`make page` builds it again."""
    names = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"]
    names += [f"src/{path.name}" for path in (SOURCES / "src").iterdir()]
    found = hashlib.sha256()
    for name in sorted(names):
        found.update(f"{name}\0".encode() + (SOURCES / name).read_bytes() + b"\0")
    assert found.hexdigest() in (ROOM / "page.html").read_text(encoding="utf-8").splitlines()[1]


def test_what_the_page_is_made_of_has_its_licences_beside_it() -> None:
    licences = (ROOM / "LICENSES.txt").read_text(encoding="utf-8")
    dependencies = json.loads((SOURCES / "package.json").read_text())["dependencies"]
    assert all(re.search(rf"^{re.escape(name)} \d", licences, re.MULTILINE) for name in dependencies)


def test_the_lock_file_names_no_registry() -> None:
    assert "resolved" not in (SOURCES / "package-lock.json").read_text()


def test_the_page_stays_small() -> None:
    assert (ROOM / "page.html").stat().st_size < 1_000_000


def test_a_path_may_be_a_text_or_a_path(tmp_path: Path) -> None:
    plan = planned("a conflict")
    plan.html(tmp_path / "plan.html")
    plan.html(str(tmp_path / "plan.htm"))
    assert (tmp_path / "plan.html").read_bytes() == (tmp_path / "plan.htm").read_bytes()


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("none/plan.html", "`none/plan.html` cannot be written: there is no folder `none`"),
        ("plan", "`plan` does not end in .html"),
        ("plan.json", "`plan.json` does not end in .html"),
        ("folder", "`folder` is a folder"),
        ("", "`path` takes the name of a file, got ''"),
        (3, "`path` takes the name of a file, got 3"),
    ],
)
def test_a_path_that_cannot_be_written_is_an_error(
    path: object, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(pt.Error) as caught:
        planned("a conflict").html(cast(str, path))
    assert str(caught.value).splitlines()[0] == error
    assert [*tmp_path.iterdir()] == [tmp_path / "folder"]


def test_the_command_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = f"{ROOT / 'examples' / 'mlp.partita'}:zero3"
    result = CliRunner().invoke(main, ["show", target, "--html", "plan.html"])
    assert (result.exit_code, result.output) == (0, "wrote plan.html\n")
    assert len(packed((tmp_path / "plan.html").read_text())["steps"]) > 1
