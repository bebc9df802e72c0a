"""A file is one idea, as long as it needs to be, named by it, and made of functions that fit on a screen."""

import ast
from collections.abc import Iterator
from pathlib import Path

from offenders import none
from root import ROOT

FOLDERS = ("compiler", "dialects", "rewrites", "tests", "examples", "benchmarks")
FILES = [*ROOT.glob("*.py"), *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))]

LONGEST_FILE = 600
LONGEST_FUNCTION = 40
NAMES_OF_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc"}


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its docstring, so that examples in docstrings cost nothing."""
    first = function.body[0]
    docstring = ast.get_docstring(function) is not None and (first.end_lineno or first.lineno) - first.lineno + 1
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def has_reason(path: Path, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A function over the limit says why, in a comment directly above it that begins `# Long:`."""
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    above = path.read_text().splitlines()[: first - 1]
    while above and above[-1].strip().startswith("#"):
        if above.pop().strip().startswith("# Long:"):
            return True
    return False


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_file_is_short_and_named_for_what_it_is():
    lengths = {name(path): len(path.read_text().splitlines()) for path in FILES}
    none([f"{file}: {length} lines" for file, length in lengths.items() if length > LONGEST_FILE])
    none([name(path) for path in FILES if path.stem in NAMES_OF_NOTHING])


def test_a_long_function_says_why():
    every = [(path, function) for path in FILES for function in functions(path)]
    long = [(path, f) for path, f in every if length(f) > LONGEST_FUNCTION and not has_reason(path, f)]
    none([f"{name(path)}:{f.lineno} {f.name}: {length(f)} lines" for path, f in long])
