"""No handler takes every exception: what raises from inside is a defect, and is seen.

A handler of `Exception` hides it, in whatever form it is written: bare, by an alias, in a tuple, as `contextlib.suppress`, or
as an `__exit__` of one's own.
"""

import ast
from collections.abc import Iterator

from root import ROOT

FILES = sorted(path for room in ("compiler", "dialects", "rewrites") for path in (ROOT / room).rglob("*.py"))
BROAD = {"Exception", "BaseException", "ExceptionGroup", "BaseExceptionGroup"}
# The few handlers that may take all, by file and function: they are around code that is not Partita's.
NEEDED = {
    "dialects/ground/validation.py:shown": "the `repr` of the user's own value, which an error shows",
    "compiler/cli/target.py:users": "the user's file is run, and its function called; what it raises is an Error at its line",
    "compiler/trace/trace.py:_jaxpr": "the user's function is traced; what it raises is raised again, or explained as an Error",
    "compiler/trace/restructured_arguments.py:equal": "the `==` of the user's own values",
    "compiler/ops/jax_expansions.py:unfold": "the Python rule of a primitive that somebody else has defined",
    "compiler/notation/check_equations.py:primitive": "JAX checks the parameters of a primitive that stand in the user's text",
    "compiler/graph/saved/load.py:_graph": "somebody else's bytes; an Error says what reading them raises",
    "compiler/run/callbacks.py:__call__": "the user's function of the host; the call raises an Error that gives what it raises",
    "compiler/define/definition_trial.py:compiled": "the user's function is tried on arrays; an Error gives what it raises",
}


def found() -> Iterator[str]:
    """Each handler that takes every exception, by its file and function."""
    for path in FILES:
        tree = ast.parse(path.read_text())
        named = aliases(tree)
        yield from (f"{path.relative_to(ROOT)}:{function}" for function in handlers(tree, named, "the module"))


def aliases(tree: ast.Module) -> set[str]:
    """The names in a file that stand for all exceptions: `Any = Exception`, `from builtins import Exception as Any`."""
    names = set(BROAD)
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value) if is_broad(value, names):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value) if is_broad(value, names):
                names.add(name)
            case ast.alias(name, str(alias)) if name in names:
                names.add(alias)
            case _:
                pass
    return names


def handlers(node: ast.AST, named: set[str], function: str) -> Iterator[str]:
    """The functions in which a handler takes every exception."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
        if function == "__exit__" and any(returns_more(each) for each in ast.walk(node)):
            yield function
    if isinstance(node, ast.ExceptHandler) and (node.type is None or is_broad(node.type, named)):
        yield function
    if isinstance(node, ast.Call) and called(node.func) == "suppress" and any(is_broad(each, named) for each in node.args):
        yield function
    for child in ast.iter_child_nodes(node):
        yield from handlers(child, named, function)


def returns_more(node: ast.AST) -> bool:
    """Whether it is a `return` of something other than None or False."""
    return isinstance(node, ast.Return) and not (
        node.value is None or (isinstance(node.value, ast.Constant) and not node.value.value)
    )


def called(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_broad(node: ast.expr, named: set[str]) -> bool:
    """Whether an expression is a class of all exceptions, or has one in it."""
    return any(called(each) in named for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute))


def test_only_the_listed_handlers_take_every_exception() -> None:
    assert sorted(found()) == sorted(NEEDED)


def test_each_form_of_such_a_handler_is_found() -> None:
    forms = """
def bare():
    try: f()
    except: pass
def named():
    try: f()
    except Exception: pass
def among():
    try: f()
    except (KeyError, BaseException): pass
def of_a_group():
    try: f()
    except* Exception: pass
def suppressed():
    with contextlib.suppress(KeyError, Exception): f()
Everything = Exception
def by_an_alias():
    try: f()
    except Everything: pass
def of_builtins():
    try: f()
    except builtins.Exception: pass
class Quiet:
    def __exit__(self, *_): return True
def narrow():
    try: f()
    except (KeyError, ValueError): pass
"""
    tree = ast.parse(forms)
    every = [*handlers(tree, aliases(tree), "the module")]
    wanted = "bare", "named", "among", "of_a_group", "suppressed", "by_an_alias", "of_builtins", "__exit__"
    assert every == [*wanted]
