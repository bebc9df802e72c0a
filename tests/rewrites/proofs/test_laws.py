"""Each law is proved, or listed as one that is not; the page of the laws says so."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from laws_page import page
from root import ROOT

from partita.rewrites.proofs.laws import Law, groups

LAWS = [pytest.param(group.title, law, id=law.name) for group in groups() for law in group.laws]


@pytest.mark.parametrize(("group", "law"), LAWS)
def test_what_is_known_of_a_law_is_what_is_stated(group: str, law: Law, record_property: Callable[[str, object], None]) -> None:
    rows = law.rows()
    # The session prints what its processes have found.
    record_property(group, pickle.dumps(rows))
    assert rows
    assert all(row.is_as_stated for row in rows), [str(row) for row in rows if not row.is_as_stated]


def test_each_law_has_a_name_of_its_own() -> None:
    for group in groups():
        assert len({law.name for law in group.laws}) == len(group.laws)


def test_the_page_of_the_laws_says_what_is_known_of_them(golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / "docs" / "laws.md", page())
