"""Running a plan: one kernel with its collectives inside, as `jax.jit(jax.shard_map(...))` on real devices.

JAX compiles and dispatches; Partita adds nothing to a call. What is checked is checked when JAX traces, or when a call fails.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jax.sharding import Mesh as DeviceMesh
from xdsl.dialects import func

from ..dialects.errors import Error
from ..dialects.mesh import Mesh
from ..rewrites.placing import Tiles, boundary
from .execute import run_local
from .names import Patterns, as_patterns, match
from .untyped import jax

if TYPE_CHECKING:
    from .plan import Plan


class Compiled:
    """A compiled plan: call it like the original function. `jit`, `grad` and `vmap` of it work.

    `jitted` is the `jax.jit` function underneath, whose first argument is the list of arrays that the program closes over.
    """

    def __init__(self, plan: Plan, devices: Sequence[Any] | None = None, donate: Patterns = ()) -> None:
        self.plan = plan
        traced, program = plan.source.traced, plan.source.program
        self.mesh = device_mesh(plan.mesh, devices)
        placements = plan.decisions.placements
        self.in_shardings = [self.sharding(value, boundary(placements, value)) for value in program.arguments]
        self.out_shardings = [self.sharding(value, boundary(placements, value)) for value in program.returned]
        self.mapped = self.map(plan)
        self.jitted = self.jit(donate)
        self.__name__ = traced.name
        self.__signature__ = traced.function.signature

    def sharding(self, value: int, tiles: Tiles) -> NamedSharding:
        rank = len(self.plan.source.program.shape(value))
        return NamedSharding(self.mesh, spec(rank, tiles))

    def map(self, plan: Plan) -> Callable[..., Any]:
        """The device-local function over the mesh."""
        main = cast(func.FuncOp, plan.spmd().body.block.first_op)
        foreign = plan.source.traced.foreign

        def local(*leaves: Any) -> tuple[Any, ...]:
            return tuple(run_local(main.body.block, leaves, foreign))

        local.__name__ = plan.source.traced.name
        return jax.shard_map(
            local,
            mesh=self.mesh,
            in_specs=tuple(each.spec for each in self.in_shardings),
            out_specs=tuple(each.spec for each in self.out_shardings),
            check_vma=False,
        )

    @cached_property
    def consts(self) -> list[Any]:
        """The arrays that the program closes over, put where the plan wants them."""
        traced = self.plan.source.traced
        own = self.in_shardings[len(traced.in_avals) :]
        with jax.ensure_compile_time_eval():
            return [jax.device_put(const, sharding) for const, sharding in zip(traced.consts, own, strict=True)]

    def jit(self, donate: Patterns) -> Callable[..., Any]:
        traced = self.plan.source.traced
        signature = traced.function.signature
        names = match(donate, signature.parameters, what="argument") if as_patterns(donate) else []

        def call(partita_consts: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            leaves = traced.flatten(args, kwargs)
            return traced.unflatten(self.mapped(*leaves, *partita_consts))

        first = inspect.Parameter("partita_consts", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [first, *signature.parameters.values()]
        kinds = [p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) if p is first else p for p in parameters]
        cast(Any, call).__signature__ = inspect.Signature(kinds)
        call.__name__ = traced.name
        return jax.jit(call, static_argnames=tuple(traced.static), donate_argnames=tuple(names))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results, as arrays with the `NamedSharding` that the plan gives them."""
        try:
            return self.jitted(self.consts, *args, **kwargs)
        except (ValueError, TypeError) as error:
            self.diagnose(args, kwargs)
            raise error

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """JAX's `Lowered`, as `jax.jit(f).lower` gives it."""
        return cast(Any, self.jitted).lower(self.consts, *args, **kwargs)

    def jaxpr(self, *args: Any, **kwargs: Any) -> Any:
        """The jaxpr of a call, with every collective in it."""
        return jax.make_jaxpr(self.jitted)(self.consts, *args, **kwargs)

    def diagnose(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Say what is wrong with a call that JAX refused; nothing, if it is none of ours."""
        traced = self.plan.source.traced
        problem = elsewhere(traced.arg_names, traced.flatten(args, kwargs), devices_of(self.mesh), self.plan.mesh)
        if problem is not None:
            raise problem


def devices_of(mesh: DeviceMesh) -> set[Any]:
    """The devices of a mesh, in no order."""
    return set(cast(Any, mesh.devices).flat)


def elsewhere(names: Sequence[str], leaves: Sequence[Any], here: set[Any], mesh: Mesh) -> Error | None:
    """The error of the first argument that is committed to other devices than the mesh's; None if there is none."""
    for name, leaf in zip(names, leaves, strict=False):
        if not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer) or not leaf.committed:
            continue
        if leaf.sharding.device_set != here:
            there = ", ".join(sorted(map(str, leaf.sharding.device_set)))
            return _elsewhere(name, there, mesh)
    return None


def _elsewhere(name: str, there: str, mesh: Mesh) -> Error:
    return Error(
        f"argument `{name}` is committed to {there}, and the plan runs on {mesh.size} devices ({mesh})",
        helps=[
            "leave it uncommitted, or put it where the plan wants it: jax.device_put(x, f.in_shardings[i])",
            "or compile for its devices: plan.compile(devices=...)",
        ],
    )


def device_mesh(mesh: Mesh, devices: Sequence[Any] | None) -> DeviceMesh:
    """The mesh on real devices, in order. Raises Error where there are too few."""
    found = list(jax.devices() if devices is None else devices)
    if len(found) < mesh.size:
        raise Error(
            f"the mesh {mesh} needs {mesh.size} devices, and there are {len(found)}",
            helps=[
                f'on a host without accelerators: jax.config.update("jax_num_cpu_devices", {mesh.size}) before first use',
                "a plan can be made, looked at and lowered without devices",
            ],
        )
    if devices is not None and len(found) > mesh.size:
        title = f"the mesh {mesh} has {mesh.size} devices, and {len(found)} are given"
        raise Error(title, helps=["give as many as the mesh has"])
    shape = tuple(mesh.axes.values())
    auto = (AxisType.Auto,) * len(shape)
    return DeviceMesh(np.array(found[: mesh.size]).reshape(shape), tuple(mesh.axes), axis_types=auto)


def spec(rank: int, tiles: Tiles) -> PartitionSpec:
    """The tiles as JAX says them: per dim its axes, major to minor."""
    dims: list[tuple[str, ...] | str | None] = []
    for dim in range(rank):
        axes = [axis for axis, _, _ in sorted((t for t in tiles if t[1] == dim), key=lambda t: -t[2])]
        dims.append(None if not axes else axes[0] if len(axes) == 1 else tuple(axes))
    return PartitionSpec(*dims)


def compile(plan: Plan, devices: Sequence[Any] | None, donate: Patterns) -> Compiled:
    """The plan as a callable."""
    return Compiled(plan, devices, donate)


def check(plan: Plan, args: Sequence[Any], kwargs: dict[str, Any]) -> float:
    """The largest |a-b|/(1e-3+|b|) between the partitioned and the original program's results; Error if it is not finite."""
    traced = plan.source.traced
    ours = jax.tree_util.tree_leaves(plan.compile()(*args, **kwargs))
    original = jax.jit(traced.function.fn, static_argnames=traced.function.static)
    theirs = jax.tree_util.tree_leaves(original(*args, **kwargs))
    worst = 0.0
    for name, a, b in zip(traced.result_names, ours, theirs, strict=True):
        if not jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            worst = max(worst, difference(name, np.asarray(a), np.asarray(b)))
    return worst


def difference(name: str, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """|a-b|/(1e-3+|b|) at its largest; equal infinities and NaNs differ by nothing."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    if not np.all(same | (np.isfinite(left) & np.isfinite(right))):
        raise Error(f"`{name}` is not finite in one of the two runs only")
    gap = np.where(same, 0.0, np.abs(left - right) / (1e-3 + np.abs(right)))
    return float(gap.max(initial=0.0))
