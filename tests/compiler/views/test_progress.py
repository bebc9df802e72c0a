"""The bar of long work: only on a terminal, only if it takes long, and gone when the work is done."""

from io import StringIO
from time import sleep

import pytest
from rich.console import Console

from partita.compiler.views import progress as module
from partita.compiler.views.progress import progress


def shown(monkeypatch: pytest.MonkeyPatch, *, after: float, is_terminal: bool) -> str:
    monkeypatch.setattr(module, "SECONDS", after)
    page = StringIO()
    with progress("compiling f", 3, Console(file=page, force_terminal=is_terminal, width=60)) as step:
        step()
        step()
        sleep(0.3)
    return page.getvalue()


def test_long_work_on_a_terminal_shows_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, after=0.01, is_terminal=True)
    assert "compiling f" in text and "2/3" in text
    assert text.endswith("\x1b[2K"), "the bar is erased"


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "compiling" not in shown(monkeypatch, after=60, is_terminal=True)


def test_what_is_no_terminal_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "compiling" not in shown(monkeypatch, after=0.01, is_terminal=False)


def test_an_error_ends_the_bar() -> None:
    page = StringIO()
    with (
        pytest.raises(ZeroDivisionError),
        progress("compiling f", 3, Console(file=page, force_terminal=True)) as step,
    ):
        step()
        raise ZeroDivisionError
    assert "compiling" not in page.getvalue()
