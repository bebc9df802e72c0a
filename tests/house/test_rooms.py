"""The three rooms of the project see each other one way: compiler -> rewrites -> dialects."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from root import ROOT

SEES = {
    "dialects": {"dialects"},
    "rewrites": {"dialects", "rewrites"},
    "compiler": {"dialects", "rewrites", "compiler"},
}
FILES = [path for room in SEES for path in sorted((ROOT / room).rglob("*.py"))]


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, by the names they have in the package `partita`."""
    package = ("partita", *path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, level=0):
                yield module or ""
            case ast.ImportFrom(module=module, names=names, level=level):
                base = (*package[: len(package) - level + 1], *([module] if module else []))
                yield from (".".join((*base, alias.name)) for alias in names)
            case _:
                pass


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_room_imports_only_what_lies_below(path: Path):
    room = path.relative_to(ROOT).parts[0]
    inside = [module.split(".")[1] for module in imports(path) if module.startswith("partita.")]
    assert {other for other in inside if other in SEES} <= SEES[room]


@pytest.mark.parametrize("path", [path for path in FILES if "compiler" not in path.parts], ids=name)
def test_dialects_and_rewrites_do_without_jax(path: Path):
    assert "jax" not in {module.split(".")[0] for module in imports(path)}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_room_is_never_imported_by_its_bare_name(path: Path):
    assert {module.split(".")[0] for module in imports(path)}.isdisjoint(SEES)
