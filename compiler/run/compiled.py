"""Running a plan: one kernel with its collectives inside, as `jax.jit(jax.shard_map(...))` on real devices.

JAX compiles and dispatches; the controller only bounds how many calls are in flight. Checks run when JAX traces, or when a call
fails.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Self, cast

import numpy as np
from jax import Array, ShapeDtypeStruct
from jax.extend.core import ClosedJaxpr
from jax.sharding import AxisType, Mesh as DeviceMesh, NamedSharding
from jax.stages import Lowered, Wrapped
from typing_extensions import TypeVar

from ...dialects.ground.amounts import counted, there_are
from ...dialects.ground.errors import Error, warn
from ...dialects.ground.validation import checked, refused
from ...dialects.mesh import Mesh
from ..inputs.arguments import donated
from ..inputs.names import Patterns
from ..jax_private import Device, backends, get_concrete_mesh, jax
from ..plan.state import State
from .addressable import devices_of
from .boundary_resharding import PlacementWarning, gathered
from .controller import Issued
from .extended_shard_map import is_inside
from .partitioned import Partitioned

R = TypeVar("R", default=Any)
"""The type of the function's result. It is Any for a plan that does not know it."""


class Compiled(Generic[R]):
    """A compiled plan: call it like the original function.

    `jit`, `vmap` and all derivatives of it are those of the function, partitioned by the same tactics.
    `jitted` is the `jax.jit` function underneath, whose first argument is the list of arrays that the program closes over.
    """

    def __init__(
        self,
        plan: State,
        devices: Sequence[Device] | None = None,
        donate: Patterns = (),
        saves: Callable[[str | Path, Sequence[str] | None, Patterns], None] | None = None,
    ) -> None:
        self.plan, self.donate, self.saves = plan, donate, saves
        self.traced = traced = plan.source.traced
        self.mesh = device_mesh(plan.mesh, devices)
        self.program = Partitioned(plan, self.mesh)
        # Now, not at the first call, so that `compile` raises the errors of lowering.
        self.program.lower()
        self.in_shardings, self.out_shardings = self.program.shardings
        self.__name__ = traced.name
        self.issued = self._jit(donate)
        self.told = False
        self.__signature__ = traced.function.signature

    def __repr__(self) -> str:
        return f"<{self.__name__}, compiled for {self.plan.mesh}>"

    def __deepcopy__(self, memo: object) -> Self:
        """Returns itself, as a `jax.jit` function does: it is never changed."""
        return self

    @cached_property
    def consts(self) -> Sequence[Array]:
        """The arrays that the program closes over, with the plan's shardings, unless the devices can only compile."""
        if only_described(self.mesh):
            return self.traced.consts
        with jax.ensure_compile_time_eval():
            return tuple(jax.device_put(const, at.sharding) for const, at in zip(self.traced.consts, self.shapes, strict=True))

    @cached_property
    def shapes(self) -> Sequence[ShapeDtypeStruct]:
        """The types of the arrays in `consts`. Lowering needs only these."""
        own = zip(self.traced.consts, self.in_shardings[len(self.traced.in_avals) :], strict=True)
        return tuple(jax.ShapeDtypeStruct(const.shape, const.dtype, sharding=sharding) for const, sharding in own)

    @property
    def jitted(self) -> Wrapped:
        return self.issued.jitted

    def _jit(self, donate: Patterns) -> Issued[R]:
        traced = self.traced
        signature = traced.function.signature
        names = donated(traced.function, donate)

        def call(partita_consts: Sequence[Array], *args: object, **kwargs: object) -> R:
            leaves = traced.flatten(args, kwargs)
            return cast(R, traced.unflatten(self.program(*leaves, *partita_consts)))

        first = inspect.Parameter("partita_consts", inspect.Parameter.POSITIONAL_ONLY)
        cast(Any, call).__signature__ = inspect.Signature([first, *signature.parameters.values()])
        call.__name__ = traced.name
        how = {"static_argnames": tuple(traced.static), "donate_argnames": names}
        return Issued(traced.name, call, self.mesh.size, **how)

    def __call__(self, /, *args: object, **kwargs: object) -> R:
        """Runs the plan. The results are arrays with the plan's `NamedSharding`s."""
        try:
            # A `shard_map` around runs the plan on its own devices, to which these arrays are not committed.
            consts = self.traced.consts if self.traced.consts and is_inside() else self.consts
            results = self.issued(consts, *args, **kwargs)
        except (ValueError, TypeError, AttributeError) as error:
            if (problem := misplaced(self.plan, args, kwargs, self.mesh)) is not None:
                raise problem from error
            raise
        if self.program.gathered and not self.told:
            self.told = True
            warn(PlacementWarning(str(gathered(self.traced.function, self.program.gathered))))
        return results

    def lower(self, /, *args: object, **kwargs: object) -> Lowered:
        """Returns JAX's `Lowered`, as `jax.jit(f).lower` does."""
        return cast(Any, self.jitted).lower(self.shapes, *args, **kwargs)

    @checked
    def save(self, path: str | Path, platforms: Sequence[str] | None = None) -> None:
        """Write the program to a file that `pt.load_compiled` runs, in a process that has none of the model's code.

        It is `plan.lower().save(path)`, which says more, and donates what this callable donates.
        """
        assert self.saves is not None, "the plan's `compile` says how"
        self.saves(path, platforms, self.donate)

    def jaxpr(self, *args: object, **kwargs: object) -> ClosedJaxpr:
        """The jaxpr of a call. It contains every collective."""
        return cast(Any, self.jitted).trace(self.shapes, *args, **kwargs).jaxpr


def misplaced(
    plan: State, args: Sequence[object], kwargs: dict[str, object], mesh: DeviceMesh, cures: Sequence[str] = ()
) -> Error | None:
    """The error for devices that cannot run, or for the first argument that is not an array, or is committed elsewhere.

    Last, the error for a mesh of other devices that `jax.set_mesh` sets. None if all fit. `cures` are the helps for arguments
    on other devices; a compiled plan has its own.
    """
    if (problem := cannot_run(plan.source.traced.name, mesh)) is not None:
        return problem
    traced, devices = plan.source.traced, list(cast(Any, mesh.devices).flat)
    for name, leaf in zip(traced.arg_names, traced.flatten(args, kwargs), strict=False):
        if isinstance(leaf, jax.ShapeDtypeStruct):
            title = f"argument `{name}` must be an array at a call, got a shape"
            return Error(title, helps=["to plan, and for `lower` and `jaxpr`, shapes are enough"])
        if not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer) or not leaf.committed:
            continue
        own = devices_of(leaf.sharding)
        if own != set(devices):
            there, here = ", ".join(sorted(map(str, own))), f"on {counted(len(devices), 'device')}"
        elif isinstance(leaf.sharding, NamedSharding) and list(cast(Any, leaf.sharding.mesh).devices.flat) != devices:
            there, here = "the same devices in another order", "in the order of its mesh"
        else:
            continue
        cures = cures or [
            f"leave it uncommitted, or move it: jax.device_put(x, f.in_shardings[{traced.arg_names.index(name)}])",
            "or compile for its devices: plan.compile(devices=...)",
        ]
        title = f"argument `{name}` is committed to {there}, but the plan runs {here} ({plan.mesh})"
        # A plan runs only on as many devices as its mesh has.
        return traced.function.error(title, *(cures if len(own) == len(devices) else cures[:1]), at=name)
    set_mesh = get_concrete_mesh()
    if not set_mesh.empty and list(set_mesh.devices.flat) != devices:
        there, here = (", ".join(map(str, each)) for each in (set_mesh.devices.flat, devices))
        title = f"`jax.set_mesh` sets a mesh on {there}, but the plan runs on {here} ({plan.mesh})"
        helps = ["call it outside of `with jax.set_mesh(...)`", "or compile for the devices of that mesh: plan.compile()"]
        return traced.function.error(title, *helps)
    return None


def only_described(mesh: DeviceMesh) -> bool:
    """Whether the devices are those of a `jax.experimental.topologies` description: XLA compiles for them, but cannot run."""
    return not any(mesh.devices.flat[0].client is backend for backend in backends().values())


def cannot_run(name: str, mesh: DeviceMesh) -> Error | None:
    """The error for a call on devices that are only described; None if they are real."""
    if not only_described(mesh):
        return None
    return Error(
        f"`{name}` is compiled for devices that are only described ({mesh.devices.flat[0].device_kind}): it cannot run",
        helps=[
            "compile ahead of time: compiled.lower(*args).compile(), with memory_analysis(), cost_analysis(), as_text()",
            "or compile for devices that are there: plan.compile(), pt.jit(...) without `devices`",
        ],
    )


def device_mesh(mesh: Mesh, devices: Sequence[Device] | None) -> DeviceMesh:
    """The mesh on real devices, in order; by default those of `jax.set_mesh`, if as many. Raises Error if there are too few."""
    program = get_concrete_mesh()
    default = list(program.devices.flat) if devices is None and program.size == mesh.size else devices
    found = distinct(jax.devices() if default is None else default)
    if len(found) < mesh.size and devices is None:
        raise too_few(mesh, len(found))
    if devices is not None and len(found) != mesh.size:
        title = f"`devices` takes {counted(mesh.size, 'device')} for the mesh {mesh}, got {len(found)}"
        raise Error(title, helps=["give as many as the mesh has"])
    shape = tuple(mesh.axes.values())
    auto = (AxisType.Auto,) * len(shape)
    return DeviceMesh(np.array(found[: mesh.size]).reshape(shape), tuple(mesh), axis_types=auto)


def too_few(mesh: Mesh, there: int) -> Error:
    """The error for a mesh that needs more devices than there are."""
    return Error(
        f"the mesh {mesh} needs {mesh.size} devices, but {there_are(there)}",
        helps=[
            f'on a host without accelerators: jax.config.update("jax_num_cpu_devices", {mesh.size}) before first use',
            "a plan can be made, looked at and lowered without devices",
        ],
    )


_SEVERAL = (list, tuple, set, frozenset, np.ndarray, np.flatiter)
"""The types that may hold devices. A generator is not one of them, because it may never end."""


def distinct(devices: object) -> list[Device]:
    """Checks devices, and returns them as a list. Raises Error for a value that is not a device, and for a repeated device."""
    found: list[object] = list(cast("Iterable[object]", devices)) if isinstance(devices, _SEVERAL) else [devices]
    for position, each in enumerate(found):
        if not isinstance(each, jax.Device):
            raise refused("devices", "a list of devices", each, "give it those in jax.devices()")
        if each in found[:position]:
            raise Error(f"device {each} is given twice", helps=["each position of the mesh needs its own device"])
    return cast("list[Device]", found)
