"""The graph of imports, read from the code, including imports inside functions and under `TYPE_CHECKING`."""

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

PACKAGE = "partita"
Graph = Mapping[str, Collection[str]]


def modules(root: Path, folders: Collection[str]) -> dict[str, Path]:
    """The package's files by their names in it: `partita`, `partita.dialects`, `partita.dialects.ranges.terms`."""
    paths = [*root.glob("*.py"), *(path for folder in folders for path in sorted((root / folder).rglob("*.py")))]
    return {_name(path.relative_to(root)): path for path in paths}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def imports(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """The imports of each file, by full names. `from a import b` is `a.b` if that is a file, and otherwise `a`."""
    return {name: {whole if whole in files else base for base, whole in _imported(name, path)} for name, path in files.items()}


def _imported(name: str, path: Path) -> Iterator[tuple[str, str]]:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package[: len(package) - level + 1] if level else []
                base = ".".join((*above, *([module] if module else [])))
                yield from ((base, f"{base}.{alias.name}") for alias in names)
            case _:
                pass


def rings(graph: Graph) -> list[str]:
    """The groups of files that import each other in a ring, each with a shortest ring."""
    inside = {name: sorted(graph.keys() & set(ends)) for name, ends in graph.items()}
    reach = {name: _reached(inside, name) for name in inside}
    groups = {frozenset(other for other in reach[name] if name in reach[other]) for name in inside if name in reach[name]}
    ways = ((len(group), min((_around(inside, name) for name in sorted(group)), key=len)) for group in groups)
    return [f"{count} files: {' -> '.join(way)}" for count, way in sorted(ways)]


def _reached(graph: Graph, name: str) -> set[str]:
    found, left = set[str](), [name]
    while left:
        fresh = set(graph[left.pop()]) - found
        found |= fresh
        left += fresh
    return found


def _around(graph: Graph, name: str) -> list[str]:
    """A shortest ring through a file, its name first and last."""
    ways, seen = [[name]], set[str]()
    for way in ways:
        for end in graph[way[-1]]:
            if end == name:
                return [*way, end]
            if end not in seen:
                seen.add(end)
                ways.append([*way, end])
    raise ValueError(f"{name} is in no ring")
