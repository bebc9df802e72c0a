"""The snapshot of all that Partita says: two of one commit are equal, and what differs in another one is shown."""

from pathlib import Path

import pytest
from generated_seeded import seeded
from snapshot_files import KINDS, Comparison
from snapshot_texts import of_case, of_plan, without_places

import partita as pt

TEXT = "== layouts\n{0}: f32[data*2]\n== explain {0}\n{0} is read by `sum#0`, as {0}.0\n== names\n0 {0}\n1 sum#0\n"


def compared(folder: Path, before: str, after: str, names_aside: bool = False) -> Comparison:
    for name, text in (("before", before), ("after", after)):
        (folder / name / "generated").mkdir(parents=True, exist_ok=True)
        (folder / name / "generated" / "000.txt").write_text(text)
    return Comparison(folder / "before", folder / "after", KINDS, False, names_aside, 20)


def test_a_seed_gives_one_program_and_one_text() -> None:
    assert (seeded(7).program, seeded(7).mesh, seeded(7).tactics) == (seeded(7).program, seeded(7).mesh, seeded(7).tactics)
    assert of_case(13) == of_case(13)


def test_a_text_that_differs_is_shown_with_its_sections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(tmp_path, TEXT.format("x"), TEXT.format("x")).report(verbose=False) == 0
    assert capsys.readouterr().out == "1 of 1 files are equal, 0 differ\n"
    assert compared(tmp_path, TEXT.format("x"), TEXT.format("x").replace("*2", "*4")).report(verbose=False) == 1
    said = capsys.readouterr().out
    assert said.startswith("DIFFERS generated/000.txt: 2 lines, in layouts\n")
    assert "    -x: f32[data*2]\n    +x: f32[data*4]\n" in said and said.endswith("0 of 1 files are equal, 1 differ\n")


def test_a_file_that_only_one_snapshot_has_differs(tmp_path: Path) -> None:
    found = compared(tmp_path, TEXT.format("x"), TEXT.format("x"))
    (tmp_path / "before" / "generated" / "001.txt").write_text(TEXT.format("y"))
    assert [bool(found.difference(file)) for file in found.files] == [False, True]


def test_values_that_are_only_called_otherwise_are_equal_with_names_aside(tmp_path: Path) -> None:
    before, after = TEXT.format("jvp(block)/x#0"), TEXT.format("block/longer#1")
    assert compared(tmp_path, before, after).report(verbose=False) == 1
    assert compared(tmp_path, before, after, names_aside=True).report(verbose=False) == 0
    assert compared(tmp_path, before, after.replace("*2", "*4"), names_aside=True).report(verbose=False) == 1


def test_lines_in_files_of_the_tests_have_no_number() -> None:
    assert without_places("add at generated_steps.py:31:4, gpt.py:31") == "add at generated_steps.py:_, gpt.py:31"
    assert "== spmd\nbuiltin.module" in of_plan(pt.plan(abs, pt.Mesh(data=2), 1.0))
