"""What a user installs: one package, complete, with its commands; nothing called `compiler` next to it."""

import tarfile
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import hatchling.build
import pytest
from root import ROOT

import partita

ROOMS = ("compiler", "dialects", "rewrites")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def sources() -> set[str]:
    """All files of the rooms: modules, grammars, definitions, rules."""
    files = (path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}


@pytest.fixture
def in_root(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("in_root")
def test_the_wheel_holds_the_package_and_only_the_package(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / hatchling.build.build_wheel(str(tmp_path))) as wheel:
        names = set(wheel.namelist())
    assert {f"partita/{name}" for name in (*sources(), "__init__.py", "__main__.py", "py.typed")} <= names
    assert {name.split("/")[0] for name in names} == {"partita", f"partita-{PROJECT['version']}.dist-info"}


@pytest.mark.usefixtures("in_root")
def test_the_source_archive_holds_what_a_wheel_is_made_of(tmp_path: Path):
    with tarfile.open(tmp_path / hatchling.build.build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {*sources(), "pyproject.toml", "README.md", "LICENSE", "Makefile", "tests/conftest.py"} <= names
    assert not [name for name in names if name.startswith(".src")]


def test_the_link_makes_the_root_importable_as_partita():
    assert (ROOT / ".src" / "partita").resolve() == ROOT.resolve()
    assert Path(str(partita.__file__)).resolve() == (ROOT / "__init__.py").resolve()


def test_both_written_versions_agree():
    assert partita.__version__ == PROJECT["version"]


@pytest.mark.parametrize("name", partita.__all__)
def test_a_public_name_exists_and_says_what_it_is(name: str):
    assert getattr(partita, name).__doc__


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        partita.plam  # noqa: B018  # pyright: ignore


COMMANDS = [*entry_points(module="partita.compiler.cli.main"), *entry_points(name="partita-opt")]


@pytest.mark.parametrize("entry", COMMANDS, ids=str)
def test_a_command_exists(entry: Any):
    assert callable(entry.load())


def test_xdsl_finds_the_dialects_and_passes():
    (entry,) = entry_points(group="xdsl.universe", name="partita")
    assert {"array", "lax", "spmd", "flow"} <= set(entry.load().all_dialects)
