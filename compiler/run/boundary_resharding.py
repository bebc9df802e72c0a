"""Finds what XLA moves in each call beside the plan: arguments that lie otherwise, and results that must be gathered.

    x: f32[8, 64] placed as P("model"), wanted as P("data")   -->   an Error that names both; `pt.jit` raises it, or warns

Arrays that are not placed are left out: the caller or JAX has to place them in any case.
"""

from collections.abc import Sequence

from jax import Array
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error
from ..inputs.arguments import UserFunction
from ..jax_private import Tracer, get_concrete_mesh
from .extended_shard_map import Gathered, mesh_text

SHOWN = 3
"""The most arguments that an error names."""


class PlacementWarning(UserWarning):
    """A call moves arguments or gathers results beside the plan, or a function of `pt.jit` has no tactics."""


def moved_arguments(
    function: UserFunction, names: Sequence[str], leaves: Sequence[object], wanted: Sequence[NamedSharding]
) -> Error | None:
    """The error that names the arguments which each call moves; None if there are none."""
    found = [
        (name, leaf, sharding)
        for name, leaf, sharding in zip(names, leaves, wanted, strict=False)
        if isinstance(leaf, Array) and _is_placed(leaf) and not leaf.sharding.is_equivalent_to(_of(leaf, sharding), leaf.ndim)
    ]
    if not found:
        return None
    notes = [_note(name, leaf.sharding, _of(leaf, at)) for name, leaf, at in found]
    size = sum(leaf.nbytes for _, leaf, _ in found)
    more = [f"and {counted(len(notes) - SHOWN, 'other')}"] if len(notes) > SHOWN else []
    return function.error(
        f"each call of `{function.name}` moves {counted(len(found), 'argument')} ({size:,} bytes) to where the plan wants them",
        "place them once: args = jax.device_put(args, f.in_shardings(*args))",
        'or accept it: pt.jit(..., reshard="allow")',
        at=found[0][0],
        notes=[*notes[:SHOWN], *more],
    )


def gathered(function: UserFunction, found: Sequence[Gathered]) -> Error:
    """The error that lists the results of a call, and the residuals of its derivative, that are gathered."""
    own, theirs = _mesh(found[0].layout), _mesh(found[0].kept)
    # A call may be traced several times.
    ways = dict.fromkeys(
        f"{_sharding_text(each.layout)} of {own} becomes {_sharding_text(each.kept)} of {theirs}" for each in found
    )
    return function.error(
        f"a call of `{function.name}` gathers arrays that the plan returns: the `Explicit` axes that `jax.set_mesh` sets "
        "cannot say how they lie",
        f"set a mesh with the axes of the plan, {own}",
        f"or plan for the mesh that is set: pt.Mesh({theirs})",
        notes=[*ways][:SHOWN],
    )


def _mesh(sharding: NamedSharding) -> str:
    return mesh_text(sharding.mesh.abstract_mesh.shape)


def _is_placed(leaf: Array) -> bool:
    """Whether the caller has placed an array. Under `jax.set_mesh`, JAX replicates arrays that are not placed."""
    if isinstance(leaf, Tracer) or not leaf.committed:
        return False
    return get_concrete_mesh().empty or not leaf.is_fully_replicated


def _of(leaf: Array, wanted: NamedSharding) -> NamedSharding:
    """The sharding of an array of keys, without the dims inside of a key, which the array does not show."""
    return NamedSharding(wanted.mesh, PartitionSpec(*wanted.spec[: leaf.ndim]))


def _note(name: str, lies: Sharding, wanted: NamedSharding) -> str:
    """How an argument lies, and how the plan wants it, in text. If the specs are equal, it names the devices."""
    ways = [_sharding_text(lies), _sharding_text(wanted)]
    if ways[0] == ways[1]:
        ways = [f"{way} on {_devices(each)}" for way, each in zip(ways, (lies, wanted), strict=True)]
    if ways[0] == ways[1]:
        ways[1] = "the same on other devices, or in another order of them"
    return f"`{name}` lies as {ways[0]}, the plan wants {ways[1]}"


def _devices(sharding: Sharding) -> str:
    """The number of devices and the axes of their mesh, in text: `8 devices (data=4, model=2)`."""
    mesh = f" ({mesh_text(sharding.mesh.shape)})" if isinstance(sharding, NamedSharding) else ""
    return f"{counted(sharding.num_devices, 'device')}{mesh}"


def _sharding_text(sharding: Sharding) -> str:
    return str(sharding.spec) if isinstance(sharding, NamedSharding) else f"a {type(sharding).__name__}"
