"""What a person gives for an axis, a dim, a pattern, a mesh or a tactic: taken, or answered with what to write instead.

Each check stands here once, so that a wrong type is an error of ours at the call, never a traceback from the middle.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from ..dialects.errors import Error
from ..dialects.mesh import Mesh

if TYPE_CHECKING:
    from .plan import Plan


def axis_of(given: object) -> str:
    """The name of one mesh axis. Raises Error for what is no text."""
    if not isinstance(given, str):
        helps = ['an axis is named by a text, "data"; for several: pt.DataParallel(("data", "model"), ...), or one tactic each']
        raise Error(f"{given!r:.60} is no name of a mesh axis", helps=helps)
    return given


def dim_number(given: object) -> int | str:
    """A dim: its number (NumPy's too), or a range name. Raises Error for anything else."""
    if isinstance(given, str):
        return given
    try:
        number = None if isinstance(given, bool) else operator.index(cast(int, given))
    except TypeError:
        number = None
    if number is None:
        helps = ["a dim is a number, negative from the end, or a range that `plan.name` named"]
        raise Error(f"{given!r:.60} is no dim", helps=helps)
    return number


def flag_of(name: str, given: object) -> bool:
    """True or False. Raises Error for anything else: a text such as "no" would count as true."""
    if not isinstance(given, bool):
        raise Error(f"{given!r:.60} is neither True nor False", helps=[f"write {name}=True or {name}=False"])
    return given


def no_axis(mesh: Mesh, values: object, dim: object, axis: object) -> None:
    """Raises Error for an axis of the mesh in the place of a dim: the two are swapped."""
    if isinstance(dim, str) and dim in mesh:
        number = dim_number(axis) if isinstance(axis, int) else 0
        helps = [f"write tile({values!r:.60}, {number}, {dim!r}): the values, their dim, the axis"]
        raise Error(f"`{dim}` is a mesh axis, and no dim", helps=helps)


def no_list(glob: str) -> None:
    """Raises Error for several patterns in one text."""
    if "," in glob:
        several = [each.strip() for each in glob.split(",")]
        raise Error(f"`{glob}` is no name, for several stand in it", helps=[f"give a list: {several!r}"])


def patterns_of(given: object) -> tuple[str, ...]:
    """One pattern or a list of them, as several. Raises Error for what is no pattern, and for none at all."""
    globs: tuple[object, ...] = (given,)
    if isinstance(given, Sequence) and not isinstance(given, str):
        globs = tuple(cast("Sequence[object]", given))
    for glob in globs:
        if not isinstance(glob, str):
            helps = ['name values by text: "params/**/w1", or a list of such']
            raise Error(f"{glob!r:.60} is no pattern of names", helps=helps)
    if not globs:
        raise Error("the list of patterns is empty", helps=['name at least one value; "**" takes every argument and result'])
    return cast("tuple[str, ...]", globs)


def mesh_given(given: object) -> Mesh:
    """The mesh. Raises Error for a mapping, a mesh of JAX's, or whatever else stands in its place."""
    if isinstance(given, Mesh):
        return given
    title = f"the mesh is a {type(given).__name__}, and no pt.Mesh"
    axes: object = cast(object, given) if isinstance(given, Mapping) else getattr(given, "shape", None)
    sizes = cast("Mapping[object, object]", axes if isinstance(axes, Mapping) else {})
    if sizes and all(isinstance(size, int) for size in sizes.values()):
        written = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise Error(title, helps=[f"write pt.Mesh({written}): devices are given to `compile`"])
    helps = ["write pt.plan(fn, mesh, *args) or pt.jit(fn, mesh=mesh, ...), with mesh = pt.Mesh(data=4, model=2)"]
    raise Error(title, helps=helps)


def tactics_given(given: object) -> tuple[Callable[[Plan], Plan], ...]:
    """The tactics of a list. Raises Error for one that is in no list, and for what is no tactic."""
    if callable(given):
        raise Error("the tactics are no list", helps=[f"write tactics=[{given!r:.60}]"])
    return tuple(map(tactic_given, cast("Sequence[object]", given)))


def tactic_given(given: object) -> Callable[[Plan], Plan]:
    """The tactic. Raises Error for what is none: a text, a list, a class that was not called."""
    if isinstance(given, type) or not callable(given):
        helps = ["a tactic is a function from plan to plan, such as pt.Tile({...}, axis); pass several as apply(*tactics)"]
        raise Error(f"{given!r:.60} is no tactic", helps=helps)
    return cast("Callable[[Plan], Plan]", given)


def run_tactic(tactic: Callable[[Plan], Plan], plan: Plan) -> Plan:
    """The plan that a tactic makes of this one. Raises Error for what is no tactic, or gives no plan."""
    made: object = tactic_given(tactic)(plan)
    if not isinstance(made, type(plan)):
        name = getattr(tactic, "__name__", repr(tactic))
        raise Error(f"the tactic `{name}` gives a {type(made).__name__}, and no plan", helps=["return the plan that it makes"])
    return made
