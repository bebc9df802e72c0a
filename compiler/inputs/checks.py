"""Checks axes, dims, patterns, meshes and tactics. A wrong one raises an Error at the call, with what to write instead."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from ...dialects.ground.errors import Error
from ...dialects.ground.validation import (
    CHECKS,
    INTEGER_BOUND,
    accepted,
    flag_of as flag_of,
    integer as integer,
    integer_of,
    refused as refused,
    shortened as shortened,
    shown as shown,
    text_of,
)
from ...dialects.mesh import Mesh
from .message_language import Question, question, step

Some = TypeVar("Some")

Axes = str | Sequence[str]
"""One mesh axis, or several, major to minor."""

LONGEST_PATTERN = 20_000
"""The most characters of a pattern. Matching one takes time in proportion to its length."""
MOST_DIMS = 64
"""The most dims that a NumPy array can have."""

# `params/{w1,w2}`: the innermost braces, and the text around them.
_BRACES = re.compile(r"(.*?)\{([^{}]*)\}(.*)", re.DOTALL)


def checked_axis(given: object, name: str = "axis") -> str:
    """Checks the name of one mesh axis. Raises Error if it is not a string."""
    if not isinstance(given, str):
        several = step('DataParallel(("data", "model"), ...)')
        helps = [f'name an axis by a string, "data"; for several: {several}, or one tactic each']
        raise refused(name, "the name of a mesh axis, a string", given, *helps)
    return str.__str__(given)


def axes_of(given: object) -> tuple[str, ...]:
    """Checks one axis or several, major to minor. Raises Error for none, for a repeated axis, and for a non-string."""
    if not isinstance(given, tuple | list):
        return (checked_axis(given),)
    axes = tuple(map(checked_axis, cast("Sequence[object]", given)))
    if not axes:
        helps = ['name one, "data", or several, ("data", "model"), major to minor']
        raise Error("expected at least one mesh axis, got none", helps=helps)
    if twice := next((axis for place, axis in enumerate(axes) if axis in axes[:place]), None):
        raise Error(f"axis `{twice}` is named twice in {shown(axes)}", helps=["name each axis once"])
    return axes


def dim_number(given: object) -> int | str:
    """Checks a dim: a number (NumPy integers too) or the name of a range. Raises Error for anything else."""
    if isinstance(given, str):
        return str.__str__(given)
    if (number := integer(given)) is None or abs(number) > INTEGER_BOUND:
        if type(given).__name__ in ("P", "PartitionSpec"):  # JAX's, which this file does not import
            spec = cast("Iterable[object]", given)
            dims = [step(f"tile(x, {at}, {axis!r})") for at, axis in enumerate(spec) if isinstance(axis, str)]
            helps = [f"give one dim at a time, with its axis: {', then '.join(dims) or step('tile(x, 0, axis)')}"]
            raise Error(f"expected a dim, got {shown(given)}", helps=helps)
        listed = question(Question.RANGES)
        helps = [f"a dim is a number, negative from the end, or the name of a range, as {listed} lists them"]
        raise Error(f"expected a dim, got {shown(given)}", helps=helps)
    return number


def block_of(given: object, padded: bool) -> int | None:
    """Checks the length of blocks, or None. Raises Error if it is not a positive integer, or if the dim is padded too."""
    if given is None:
        return None
    block = integer(given)
    if block is None or not 1 <= block < INTEGER_BOUND:
        title = f"`block` takes the number of consecutive elements that go to one device, got {shown(given)}"
        raise Error(title, helps=["block=1 deals the elements out one by one; leave it out for one block on each device"])
    if padded:
        raise Error("a dim cannot be padded and dealt out in blocks", helps=["leave out `padded` or `block`"])
    return block


def no_axis(mesh: Mesh, values: object, dim: object, axis: object) -> None:
    """Raises Error if the dim is a mesh axis, which means that the two arguments are swapped."""
    if isinstance(dim, str) and mesh.parts(dim, ()):
        number = dim_number(axis) if isinstance(axis, int) else 0
        helps = [f"write tile({shown(values)}, {number}, {dim!r}): the values, their dim, the axis"]
        raise Error(f"expected a dim, got the mesh axis `{dim}`", helps=helps)


def no_list(glob: str) -> None:
    """Raises Error if one string contains several patterns."""
    if "," in glob:
        several = list(dict.fromkeys(each.strip() for each in _spread(glob).split(",")))
        raise Error(f"`{glob}` names several values; pass a list", helps=[f"write {several!r}"])


def _spread(glob: str) -> str:
    """Expands the choices in a pattern's braces: `params/{w1,w2}` --> `params/w1,params/w2`."""
    if found := _BRACES.fullmatch(glob):
        before, choices, after = found.groups()
        return ",".join(_spread(before + choice.strip() + after) for choice in choices.split(","))
    return glob


def patterns_of(given: object) -> tuple[str, ...]:
    """Checks one pattern or a list of them, and returns a tuple. Raises Error for a non-string, and for an empty list."""
    globs: tuple[object, ...] = (given,)
    if isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray | memoryview | range):
        globs = tuple(cast("Sequence[object]", given))
    for glob in globs:
        if not isinstance(glob, str):
            helps = ['name values by a pattern, "params/**/w1", or by a list of patterns']
            raise Error(f"a pattern of names must be a string, got {shown(glob)}", helps=helps)
        if len(glob) > LONGEST_PATTERN:
            title = f"a pattern of names must have at most {LONGEST_PATTERN:,} characters, got {shown(glob)}"
            raise Error(title, helps=["give several as a list"])
    if not globs:
        helps = ['name at least one value; "**" takes every argument and result']
        raise Error(f"a list of patterns must not be empty, got {shown(cast(object, given))}", helps=helps)
    return tuple(str.__str__(cast(str, glob)) for glob in globs)


def is_deep(given: object) -> bool:
    """Whether lists and tuples are nested deeper than an array can have dims.

    JAX must not be asked to make an array of them: each time that it comes to Python's limit of recursion, the limit is lower
    afterwards, until no function can be called.
    """
    level: dict[int, object] = {id(given): given}
    for _ in range(MOST_DIMS):
        lists = (cast("Sequence[object]", each) for each in level.values() if isinstance(each, list | tuple))
        level = {id(each): each for several in lists for each in several}
    return bool(level)


def dims_given(values: object, axis: object, more: object) -> None:
    """Raises Error if `Tile` gets patterns without their dims, or a dim in place of the axis."""
    if isinstance(values, Mapping):
        return
    if isinstance(axis, Mapping):
        raise Error(
            "`Tile` takes the dims first, then the axis",
            helps=["write " + step(f"Tile({shown(cast(object, axis))}, {shown(values)})")],
        )
    named = isinstance(axis, str)
    dim, on = (0, axis) if named else (axis, more if isinstance(more, str) else "data")
    table = ", ".join(
        f"{glob!r}: {dim if isinstance(dim, str) else shown(dim)}"
        for glob in accepted("values", lambda _, given: patterns_of(given), values)
    )
    title = "`Tile` takes each dim with its pattern"
    title = f"`values` of `Tile` takes a dim for each pattern, got {shown(values)}" if named else title
    raise Error(title, helps=["write " + step(f"Tile({{{table}}}, {shown(on)})")])


def count_of(kind: str, given: object) -> int:
    """Checks a number of collectives. Raises Error if it is not a non-negative integer."""
    count = integer(given)
    if count is None or not 0 <= count < INTEGER_BOUND:
        helps = [f'give the number that one call runs, or a bound: plan.expect({kind}=3), plan.expect({kind}="<=3")']
        raise Error(f"`{kind}` takes a count, got {shown(given)}", helps=helps)
    return count


def range_name(given: object) -> str:
    """Checks the name of a range. Raises Error if it is not an identifier."""
    if not isinstance(given, str) or not given.isidentifier():
        helps = ["name a range by letters, digits and `_`: " + step('name("x", 0, "B")')]
        raise Error(f"a range's name must be an identifier, got {shown(given)}", helps=helps)
    return str.__str__(given)


def mesh_given(given: object) -> Mesh:
    """Checks a mesh. Raises Error for a mapping, a JAX mesh, or any other value."""
    if isinstance(given, Mesh):
        return given
    title = f"`mesh` must be a pt.Mesh, got {type(given).__name__}"
    axes: object = cast(object, given) if isinstance(given, Mapping) else getattr(given, "shape", None)
    sizes = cast("Mapping[object, object]", axes if isinstance(axes, Mapping) else {})
    if sizes and all(isinstance(size, int) for size in sizes.values()):
        written = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise Error(title, helps=[f"write pt.Mesh({written}), and pass devices to `compile`"])
    helps = ["write pt.plan(fn, mesh, *args) or pt.jit(fn, mesh=mesh, ...), with mesh = pt.Mesh(data=4, model=2)"]
    raise Error(title, helps=helps)


def tactics_given(given: Iterable[Some]) -> tuple[Some, ...]:
    """Checks a list of tactics. Raises Error for a single tactic, and for an element that is not a tactic."""
    if callable(given):
        raise Error("`tactics` must be a list, got one tactic", helps=[f"write tactics=[{shown(given)}]"])
    if not isinstance(given, list | tuple):
        raise refused("tactics", "a list of tactics", given, 'write tactics=[pt.DataParallel("data")]')
    return tuple(map(tactic_given, given))


def tactic_given(given: Some) -> Some:
    """Checks a tactic. Raises Error for a string, a list, or a class that was not called."""
    if isinstance(given, type) and any("__call__" in vars(base) for base in given.__mro__):
        raise Error(f"expected a tactic, got the class `{given.__name__}`", helps=[f"call it: {_call_of(given)}"])
    if isinstance(given, type) or not callable(given):
        helps = ["a tactic is a function from plan to plan, such as pt.Tile({...}, axis); pass several as apply(*tactics)"]
        if isinstance(given, str):
            helps = ["`pt.replay` reads tactics from text: pt.replay(fn, mesh, text, *args)", *helps]
        raise Error(f"expected a tactic, got {shown(given)}", helps=helps)
    return given


def _call_of(tactic: type) -> str:
    """An example of a call that makes a tactic, with the arguments that it needs."""
    try:
        given = inspect.signature(tactic).parameters.values()
    except ValueError:
        given = ()
    needed = [each.name for each in given if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    axes = {"axis": '"data"', "data": '"data"', "model": '"model"'}
    package = __name__.partition(".")[0]
    prefix = "pt." if tactic.__module__.partition(".")[0] == package else ""
    return f"{prefix}{tactic.__name__}({', '.join(axes.get(name, name) for name in needed)})"


def run_tactic(tactic: Callable[[Some], Some], plan: Some) -> Some:
    """Applies a tactic to a plan. Raises Error if it is not a tactic, or does not return a plan."""
    made: object = tactic_given(tactic)(plan)
    if not isinstance(made, type(plan)):
        name = getattr(tactic, "__name__", repr(tactic))
        title = f"tactic `{name}` returned {shown(made)}, expected a plan"
        raise Error(title, helps=["return the plan that it makes"])
    return made


def _as_given(given: object, texts: tuple[str, ...]) -> str | list[str] | tuple[str, ...]:
    """A string, a list or a tuple, as what was given."""
    return texts[0] if isinstance(given, str) else texts if isinstance(given, tuple) else [*texts]


def said_patterns(_: str, given: object) -> str | list[str] | tuple[str, ...]:
    """Checks patterns, and returns them as they were given, for the text of a trace: a string, a list or a tuple."""
    return _as_given(given, patterns_of(given))


def said_dims(name: str, given: object) -> object:
    """Checks patterns, or a mapping from patterns to dims, and returns them as they were given."""
    if not isinstance(given, Mapping):
        return said_patterns(name, given)
    pairs = cast("Mapping[object, object]", given).items()
    return {cast(str, said_patterns(name, text_of(name, glob))): dim_number(dim) for glob, dim in pairs}


def said_axes(_: str, given: object) -> str | list[str] | tuple[str, ...]:
    """Checks one axis or several, and returns them as they were given."""
    return _as_given(given, axes_of(given))


CHECKS.update(
    {
        # A number is a dim: where it is in the place of the axis, the function knows what was meant.
        "axis: str": lambda _, given: given if isinstance(given, int) and abs(given) < INTEGER_BOUND else checked_axis(given),
        "data: str": lambda name, given: checked_axis(given, name),
        "model: str": lambda name, given: checked_axis(given, name),
        # A number of elements, which FSDP reads when it looks for what is large.
        "smallest: int | None": lambda _, given: given,
        "axis: Axes": lambda name, given: (
            given if isinstance(given, int) and abs(given) < INTEGER_BOUND else said_axes(name, given)
        ),
        "Axes": said_axes,
        "block: int | None": lambda _, given: block_of(given, False),
        # A text is the axis: `ZeRO` says which of the two comes first.
        "stage: int": lambda name, given: given if isinstance(given, str) else integer_of(name, given),
        "Patterns": said_patterns,
        "Dims": said_dims,
        "values: Mapping[str, int]": said_dims,
        "int | str": lambda _, given: dim_number(given),
        "dim: int": lambda _, given: dim_number(given),
        "tactic: PlanStep": lambda _, given: tactic_given(given),
        "tactics: PlanStep": lambda _, given: tactic_given(given),
        "label: str": lambda _, given: range_name(given),
        "mesh: Mesh": lambda _, given: mesh_given(given),
    }
)
