"""Rooms, and the folders in each, are layers: a file imports from its own row and from rows below."""

import re
from functools import cache
from pathlib import Path

import pytest
from imports import Graph, imports, modules, rings
from offenders import none
from root import ROOT

# From the top down, one row per line: folders, or files beside them. `.` is the room's own `__init__`.
ROOMS = {
    "compiler": """
        .
        cli
        shell testing
        programs
        api
        report
        graph
        run
        answers
        advice
        cost structure
        plan
        page views
        notation
        trace
        define
        ops
        inputs
        jax_private gc_pause
        """,
    "rewrites": """
        .
        proofs
        lower
        plan_text
        decide
        redistribute
        laws
        program
        rules emit rewire
        """,
    "dialects": """
        .
        reference
        spmd flow lax lax_verify array regions module_op op_text plan types layouts collective_arrays
        definitions
        ranges mesh chips program_text params
        grammar
        ground
        """,
}
# The package's face is above all rooms.
TOWER = [
    [".", ".__main__"],
    *(
        [f".{room}.{name}".rstrip(".") for name in row.split()]
        for room, rows in ROOMS.items()
        for row in rows.strip().splitlines()
    ),
]
DEPTH = {f"partita{name}".rstrip("."): depth for depth, row in enumerate(TOWER) for name in row}
FILES = modules(ROOT, ROOMS)


@cache
def graph_of_imports() -> Graph:
    return imports(FILES)


def depth(name: str) -> int | None:
    """The row of a module, counted from the top; None for a module that is not ours."""
    return DEPTH.get(".".join(name.split(".")[:3]))


def upward(graph: Graph) -> list[str]:
    """The imports from a higher row, with both ends."""
    ends = ((name, depth(name), end, depth(end)) for name in sorted(graph) for end in sorted(graph[name]))
    return [f"{name} -> {end}" for name, at, end, to in ends if at is not None and to is not None and to < at]


def test_the_map_of_a_folder_names_each_of_its_files() -> None:
    maps = {path.parent: path.read_text() for room in ROOMS for path in (ROOT / room).rglob("__init__.py")}
    inside = [path for folder in maps for path in folder.iterdir() if path in maps or path.suffix == ".py"]
    files = [path for path in inside if path.stem != "__init__"]
    none([str(path.relative_to(ROOT)) for path in files if not re.search(rf"\b{path.stem}\b", maps[path.parent])])


def test_every_file_has_a_row() -> None:
    none([name for name in FILES if depth(name) is None])


def test_a_file_imports_from_its_row_and_from_rows_below() -> None:
    none(upward(graph_of_imports()))


def test_no_files_import_each_other_in_a_ring() -> None:
    none(rings(graph_of_imports()))


def test_dialects_and_rewrites_do_not_import_jax() -> None:
    rooms = tuple(f"partita.{room}" for room in ("dialects", "rewrites"))
    arrows = [(name, end) for name in FILES if name.startswith(rooms) for end in graph_of_imports()[name]]
    none([f"{name} -> {end}" for name, end in arrows if end.split(".")[0] == "jax"])


def test_a_room_is_never_imported_by_its_bare_name() -> None:
    arrows = [(name, end) for name in FILES for end in graph_of_imports()[name]]
    none([f"{name} -> {end}" for name, end in arrows if end.split(".")[0] in ROOMS])


# Four files: a ring of two, one of them inside a function, the other for types; and an arrow up from the ground.
WRONG = {
    "rewrites/__init__.py": "",
    "rewrites/rules/rule.py": "import jax\n\ndef f():\n    from . import parse\n",
    "rewrites/rules/parse.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from .rule import f\n",
    "dialects/ground/errors.py": "from ...rewrites.rules.rule import f\n",
}


@pytest.fixture
def wrong(tmp_path: Path) -> Graph:
    for name, text in WRONG.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return imports(modules(tmp_path, ROOMS))


def test_a_ring_is_found_with_a_way_around(wrong: Graph) -> None:
    around = "2 files: partita.rewrites.rules.parse -> partita.rewrites.rules.rule -> partita.rewrites.rules.parse"
    assert rings(wrong) == [around]


def test_an_arrow_that_leads_up_is_found_with_both_ends(wrong: Graph) -> None:
    assert upward(wrong) == ["partita.dialects.ground.errors -> partita.rewrites.rules.rule"]
    assert "jax" in wrong["partita.rewrites.rules.rule"]
