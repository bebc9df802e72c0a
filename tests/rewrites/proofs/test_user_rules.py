"""A user's rule is proved where that is possible, and otherwise tested; a false one is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

import partita as pt

RULES = {
    "halves: dot(x + x, y) => dot(x, y) + dot(x, y)": "proved: by sums of products",
    "shares: dot(x / y, z) => dot(x, z / y)": "proved: by sums of products, for reals and complex",
    "powers: exp(x) * exp(y) => exp(x + y)": "tested on 120 random instances of each dtype",
}


@pytest.mark.parametrize("text", RULES)
def test_a_law_says_how_it_is_known(text: str) -> None:
    assert repr(pt.rule(text)) == f"<law {text} ({RULES[text]})>"


@pytest.mark.parametrize("text", ["wrong: dot(x, y + z) => dot(x, y) + z", "logs: log(x * y) => log(x) + log(y)"])
def test_a_false_rule_is_refused_with_arrays(text: str) -> None:
    with pytest.raises(pt.Error, match="is not a law: its sides differ"):
        pt.rule(text)


def test_partita_is_imported_without_z3() -> None:
    subprocess.run([sys.executable, "-c", "import sys, partita; sys.exit('z3' in sys.modules)"], check=True)
