"""The target of a command: `FILE:FUNCTION`, and the shapes of the function's arguments.

mlp.py:chain f32[256, 8] f32[8, 16] f32[16, 8]   --> the function, traced on these shapes
mlp.py:plan                                      --> the plan that the function returns: it takes no arguments
mlp.partita:zero3                                --> the plan of that name, or the annotations of the function of that name
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import cast

import jax

from ...dialects.ground.amounts import counted
from ...dialects.ground.dtypes import short
from ...dialects.ground.errors import Error, did_you_mean
from ...dialects.layouts import parse_array
from ...dialects.mesh import Mesh
from ..api.notation import load
from ..api.plan import Plan, plan
from ..api.replay import plans_of, with_plan_of
from ..api.tactic_text import tactics_of
from ..inputs.files import regular
from ..inputs.lines import raised_at
from ..inputs.names import listed

NOTATION = ".partita"
MOST_LISTED = 8
"""The most functions of a file, and the most calls, that an error lists."""


def find_function(target: str) -> Callable[..., object]:
    """Finds the function that `FILE:FUNCTION` names. The file is run as by `python FILE`, with its folder first on the path."""
    file, colon, name = target.rpartition(":")
    if not colon:
        raise Error(f"expected a file and a function, got `{target}`", helps=["write it as FILE.py:FUNCTION, or FILE.partita"])
    module = module_of(file)
    found = vars(module).get(name)
    if not callable(found):
        raise Error(f"`{file}` has no function `{name}`", helps=_functions_of(module, name))
    return found


def _functions_of(module: ModuleType, name: str) -> list[str]:
    """The helps for an unknown function: the nearest names, and the functions that the file itself defines."""
    every = [each for each, value in vars(module).items() if callable(value)]
    own = [each for each in every if getattr(vars(module)[each], "__module__", None) == module.__name__]
    return [
        *did_you_mean(name, every, most=3),
        f"its functions: {listed(own, MOST_LISTED)}" if own else "it defines no function",
    ]


def ran_or_planned(target: str, shapes: Sequence[str], mesh: str, tactics: str, file: str = "") -> Plan | None:
    """Makes the plan of a command: it partitions the function or, without shapes, takes the plan that the function returns.

    First the tactics of a plan file are applied, if there is one, then `tactics`, the text of a plan's trace. None if the
    function, without arguments, returned None: it is a program that has run.
    """
    saved = plans_of(file) if file else None
    made = _start(target, shapes, mesh or (str(saved.mesh) if saved is not None and shapes else ""))
    if made is None:
        if file or tactics:
            raise no_plan(target, made)
        return None
    return (made if saved is None else with_plan_of(saved, made)).apply(*tactics_of(tactics))


def no_plan(target: str, found: object) -> Error:
    """The error for a function that returned something else than a plan."""
    title = f"`{target}` returned {type(found).__name__}, expected a plan"
    return Error(title, helps=["name a function that returns one, or give --mesh and shapes to partition this one"])


def _start(target: str, shapes: Sequence[str], mesh: str) -> Plan | None:
    if target.partition(":")[0].endswith(NOTATION):
        return notation_plan(target, shapes, mesh)
    function, arguments = find_function(target), [struct(shape) for shape in shapes]
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        helps = [f"its arguments are {inspect.signature(function)}: give the shape of each, like `f32[256,8]`, and --mesh"]
        raise Error(f"`{target}` cannot be called with {counted(len(shapes), 'shape')}: {error}", helps=helps) from None
    if shapes and not mesh:
        raise Error(f"`{target}` is given shapes but no mesh", helps=["give one: --mesh data=4,model=2"])
    over = Mesh.parse(mesh) if mesh else None
    with users(f"the shapes were {', '.join(shapes)}" if shapes else ""):
        made = function() if over is None else plan(function, over, *arguments)
    if not isinstance(made, Plan | None):
        raise no_plan(target, made)
    return cast("Plan | None", made)


def notation_plan(target: str, shapes: Sequence[str], mesh: str) -> Plan:
    """Makes the plan of a program in index notation: a `plan` block's, or that of the annotations of a function."""
    file, _, name = target.partition(":")
    if shapes:
        raise Error(f"`{file}` declares the shapes of its arguments", helps=[f"leave out `{shapes[0]}`"])
    program, over = load(file), Mesh.parse(mesh) if mesh else None
    if not name:
        return program.plan(mesh=over)
    if name in program.functions and name not in program.plans:
        return program.plan(function=name, mesh=over)
    return program.plan(name, mesh=over)


def struct(text: str) -> jax.ShapeDtypeStruct:
    """Parses `f32[256, 8]` to an argument's type. Raises Error if it is malformed, or if JAX would narrow the dtype."""
    try:
        dtype, layout = parse_array(text, Mesh())
        shape = layout.global_shape
    except Error as error:
        raise Error(f"expected a shape, got `{text}`", notes=[error.title], helps=["write it like f32[512,256]"]) from None
    try:
        taken = jax.dtypes.canonicalize_dtype(dtype)
    except TypeError:
        helps = ["write it like f32[512,256]; others are bf16, f16, i32, u32, bool"]
        raise Error(f"`{short(dtype)}` in `{text}` is not a dtype", helps=helps) from None
    if taken.name != dtype:
        helps = [f"write {short(taken.name)}, or set JAX_ENABLE_X64=1"]
        raise Error(f"`{short(dtype)}` in `{text}` would become {short(taken.name)} in JAX", helps=helps)
    return jax.ShapeDtypeStruct(shape, dtype)


def module_of(file: str) -> ModuleType:
    """Runs a Python file, with its folder first on the path. Raises Error if there is no such file, or if it is not Python."""
    path = regular(file, "write it as FILE.py:FUNCTION").resolve()
    # The name must differ from those of modules that the file imports; dataclasses look up their module by it.
    spec = importlib.util.spec_from_file_location(f"partita target {path.stem}", path)
    if spec is None or spec.loader is None:
        raise Error(f"`{path.name}` is not a Python file", helps=["write it as FILE.py:FUNCTION, or FILE.partita"])
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[spec.name] = module
    with users():
        spec.loader.exec_module(module)
    return module


@contextmanager
def users(*how: str) -> Generator[None]:
    """Turns what the user's own program raises into an Error at its line. What Partita itself raises is a defect, and is kept.

    x @ w of f32[3, 5] and f32[8, 4]   -->   your program raised TypeError: dot_general requires contracting dimensions ...
    """
    try:
        yield
    except Error:
        raise
    except Exception as error:
        lines = raised_at(error)
        if not lines:
            raise
        # JAX's own text may go on about its traceback, and Python's repeats the place.
        text = error.msg if isinstance(error, SyntaxError) else str(error).strip().partition("\n")[0]
        title = f"your program raised {type(error).__name__}{f': {text}' if text else ''}"
        notes = [f"called from {line}" for line in reversed(lines[:-1])]
        raise Error(title, location=lines[-1].location(), notes=[*filter(None, how), *notes[:MOST_LISTED]]) from error
