"""Plan files that an earlier version saved give the layouts and the bytes that they gave then.

Beside each file is what its plan did, which is written anew only where a plan receives less. The files are never written anew:
they stay in the repositories of users.
"""

import json
import warnings
from pathlib import Path

import pytest
from expected_texts import is_original
from saved_plans import SAVED, does

import partita as pt

FOLDER = Path(__file__).parent / "saved"
ONCE = frozenset(
    "zero1 zero2 zero3 sequence context tensor2d slow_pods fsdp each_trip experts images_in_space values_in_scopes annotated "
    "sub_axes decoding".split()
)
"""The files whose records count a collective that several tactics cause for one of them. Now they would count it for each."""
REPLACED = frozenset(["chunked"])
"""The files whose tactics are others now: a value in parts is a tile on a loop, which the layouts show."""


@pytest.mark.parametrize("name", SAVED)
def test_a_plan_file_of_an_earlier_version_does_what_it_did(name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pt.ReplayWarning)
        plan = SAVED[name]().replayed(FOLDER / f"{name}.partita")
    done, did = does(plan), json.loads((FOLDER / f"{name}.json").read_text())
    if not is_original():
        # Another JAX computes the same results through other values.
        del done["computed"], did["computed"]
    assert done == did
    said = "".join(str(each.message) for each in caught)
    assert ("something else" in said) == (name in ONCE or name in REPLACED)
    assert ("layouts have changed" in said) == (name in REPLACED) and "are not the same" not in said


def test_every_plan_file_is_replayed() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(SAVED)
