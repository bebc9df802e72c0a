"""`Any` is rare in the signatures of the compiler, and each one says why."""

import ast
from collections.abc import Iterator

from root import ROOT

FILES = sorted((ROOT / "compiler").rglob("*.py"))
MOST = 20
Function = ast.FunctionDef | ast.AsyncFunctionDef


def own_aliases(tree: ast.Module) -> Iterator[str]:
    """The names that a module gives to `Any`: `Array: TypeAlias = Any`."""
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(name), value=ast.Name("Any")) | ast.Assign([ast.Name(name)], ast.Name("Any")):
                yield name
            case _:
                pass


def aliases(tree: ast.Module, known: dict[str, set[str]]) -> set[str]:
    """Every name that is `Any` in a module: its own, and those that it imports."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in known.get((node.module or "").rpartition(".")[2], set())
    }
    return {"Any", *own_aliases(tree), *imported}


def annotations(function: Function) -> Iterator[ast.expr]:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    yield from (each.annotation for each in every if each is not None and each.annotation is not None)
    if function.returns is not None:
        yield function.returns


def names(annotation: ast.expr) -> Iterator[str]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from names(ast.parse(node.value, mode="eval").body)


def has_reason(lines: list[str], function: Function) -> bool:
    """Whether a comment above the function, or above its decorators, begins with `# Any: `."""
    number = min([function.lineno, *(each.lineno for each in function.decorator_list)]) - 2
    while number >= 0 and lines[number].lstrip().startswith("#"):
        if lines[number].lstrip().startswith("# Any: "):
            return True
        number -= 1
    return False


def found() -> Iterator[tuple[str, bool]]:
    """Each signature that contains `Any`, by its location, and whether its reason is given."""
    trees = {file: ast.parse(file.read_text()) for file in FILES}
    known = {file.stem: set(own_aliases(tree)) for file, tree in trees.items()}
    for file, tree in trees.items():
        untyped, lines = aliases(tree, known), file.read_text().splitlines()
        for node in ast.walk(tree):
            if isinstance(node, Function) and any(name in untyped for each in annotations(node) for name in names(each)):
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", has_reason(lines, node)


def test_few_signatures_of_the_compiler_have_any_and_each_gives_its_reason() -> None:
    signatures = list(found())
    assert len(signatures) < MOST, "\n".join(place for place, _ in signatures)
    unexplained = [place for place, reason in signatures if not reason]
    assert not unexplained, "without a comment `# Any: why` above:\n" + "\n".join(unexplained)
