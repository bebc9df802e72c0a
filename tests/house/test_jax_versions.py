"""What differs between versions of JAX is in `compiler/jax_private.py` alone, and each page names the same versions."""

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest
from offenders import none
from root import ROOT

from partita.compiler.jax_private import OLDEST, VERSION

HOME = ROOT / "compiler" / "jax_private.py"
FOLDERS = ("compiler", "dialects", "rewrites", "tests", "examples", "benchmarks", "docs")
FILES = [*ROOT.glob("*.py"), *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def private(tree: ast.Module) -> Iterator[int]:
    """The lines that name a private module of JAX, or ask for JAX's version."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if f"{module}.".startswith("jax._src."):
                yield node.lineno
            case ast.Import(names) if any(f"{each.name}.".startswith("jax._src.") for each in names):
                yield node.lineno
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=[ast.Constant(str(text)), *_]):
                if name == "import_module" and f"{text}.".startswith("jax._src."):
                    yield node.lineno
                if name == "version" and text in ("jax", "jaxlib"):
                    yield node.lineno
            case ast.Attribute(ast.Name("jax" | "jaxlib"), "__version__" | "__version_info__" | "version" | "_src"):
                yield node.lineno
            case _:
                pass


def test_private_names_and_the_version_of_jax_are_read_in_one_file_alone() -> None:
    lines = ((path, line) for path in FILES if path != HOME for line in private(ast.parse(path.read_text())))
    none([f"{path.relative_to(ROOT)}:{line}" for path, line in lines])


@pytest.mark.parametrize(
    "line",
    [
        "from jax._src.core import Primitive",
        "import jax._src.core",
        "core = import_module('jax._src.core')",
        "new = jax.__version_info__ > (0, 11)",
        "new = version('jax') != '0.10.2'",
    ],
)
def test_a_line_that_depends_on_the_version_is_found(line: str) -> None:
    assert list(private(ast.parse(line))) == [1]


def supported() -> tuple[str, str]:
    """The versions of JAX that the package asks for: from the first to before the second."""
    (requirement,) = (each for each in PROJECT["dependencies"] if re.match(r"jax\b", each))
    return re.fullmatch(r"jax>=([\d.]+),<([\d.]+)", requirement).groups()  # pyright: ignore


def test_the_oldest_version_is_the_one_that_the_package_asks_for() -> None:
    assert supported()[0] == ".".join(map(str, OLDEST))
    assert OLDEST <= VERSION


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_a_page_says_which_versions_are_supported(page: str) -> None:
    first, end = supported()
    major, minor = end.split(".")
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert f"Python {pythons[0]} to {pythons[-1]}" in (ROOT / page).read_text()
    assert f"JAX {first} to {major}.{int(minor) - 1}" in (ROOT / page).read_text()
