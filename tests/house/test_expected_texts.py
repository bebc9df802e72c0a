"""Expected texts are those of the oldest Python and JAX; elsewhere their figures are compared, and their words are listed."""

from collections.abc import Callable
from pathlib import Path

import expected_texts
import pytest
from root import ROOT

SAID = "error: 2 conflicts\nall_reduce of `jvp(y)#10` over model: 512 bytes, needed by `sub`, f32[8, 16]\nall_gather: 2\n"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_texts, "is_original", lambda: False)
    monkeypatch.setattr(expected_texts, "ROOT", Path("/"))


def written(folder: Path) -> Path:
    path = folder / "page.md"
    path.write_text(SAID)
    return path


@pytest.mark.usefixtures("elsewhere")
def test_a_value_that_newer_versions_name_otherwise_is_listed(
    tmp_path: Path, golden: Callable[[Path, str], None], request: pytest.FixtureRequest
) -> None:
    golden(written(tmp_path), SAID.replace("#10", "#9"))
    (listed,) = (each for each in request.node.user_properties if each[0].startswith(expected_texts.KEY))
    assert listed[1] == 1
    request.node.user_properties.remove(listed)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("was", "now"), [("512", "1024"), (": 2\n", ": 3\n"), ("[8, 16]", "[16, 8]"), ("conflicts", "stops")])
def test_another_figure_or_title_fails_with_each_version(
    was: str, now: str, tmp_path: Path, golden: Callable[[Path, str], None]
) -> None:
    with pytest.raises(AssertionError):
        golden(written(tmp_path), SAID.replace(was, now))


def test_texts_are_updated_with_the_versions_that_give_them(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(expected_texts, "is_original", lambda: False)
    monkeypatch.setattr(pytestconfig.option, "update", True)
    with pytest.raises(pytest.UsageError, match=r"those of Python 3\.11 and JAX 0\.10"):
        expected_texts.check_update(pytestconfig)


def test_the_page_on_contributing_says_where_the_texts_come_from() -> None:
    assert "Expected texts are those of the oldest Python and JAX." in (ROOT / "CONTRIBUTING.md").read_text()
