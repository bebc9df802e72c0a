"""The picture of a session in the README is what the session shows; `--update` or `make pictures` draws it anew."""

from collections.abc import Callable
from pathlib import Path

from root import ROOT

from partita.compiler.shell.script import picture
from partita.compiler.shell.session import Session
from partita.examples import llama

PICTURES = ROOT / "docs" / "pictures"


def test_the_recorded_session_is_what_the_shell_says(golden: Callable[[Path, str], None]) -> None:
    lines = (PICTURES / "tactics.txt").read_text().splitlines()
    made, failed = picture(Session.start(llama.plan(), width=80), lines, "tactics.txt", "partita shell examples/llama.py:plan")
    assert failed is None
    assert "url(http" not in made
    golden(PICTURES / "shell.svg", made)
