"""Every example in the documentation runs, and prints what the page says it prints."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import Page
from root import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_says_what_its_examples_do(path: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setitem(os.environ, "COLUMNS", "100")
    golden(path, Page(path).run())


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_link_to_a_file_leads_somewhere(path: Path):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert not [target for target in targets if not (path.parent / target).exists()]


def test_a_page_with_wrong_output_is_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n```text\n3\n```\n```console\n$ echo a\nb\n```\n")
    assert Page(page).run() == "```python\nprint(1 + 1)\n```\n```text\n2\n```\n```console\n$ echo a\na\n```\n"


RUNS = re.compile(r"\.(?:compile|check|run)\(|pt\.jit\(")


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_asks_for_devices_before_it_runs_on_them(path: Path):
    """The tests have eight devices, but a reader who pastes the page has one."""
    read = ""
    for block in Page(path).blocks():
        read += block.text if block.kind == "python" else ""
        assert not RUNS.search(read) or "jax_num_cpu_devices" in read[: read.index(RUNS.findall(read)[0])], block.first
