"""`pt.jit`: partition and run a function in one call.

The plan is made while `jax.jit` traces. So JAX's own cache (by tree, shape, dtype, weak type and static values) caches the
plans, and a call costs as much as a call of a `jax.jit` function.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypedDict, TypeVar, Unpack, cast, overload

from jax.stages import Lowered, Wrapped as JitWrapped

from ...dialects.definitions.registry import definitions
from ...dialects.mesh import Mesh
from ..inputs.arguments import Function
from ..inputs.checks import mesh_given, shown, tactics_given
from ..inputs.donated import donated
from ..jax_private import Device, jax, tree
from ..run.compiled import Compiled, device_mesh, misplaced
from .plan import Plan, Tactic, plan as make_plan, warn_of_conflicts

R = TypeVar("R")

# For arguments that are committed to other devices.
_CURES = (
    "leave it uncommitted, or move all: args = jax.device_put(args, f.in_shardings(*args))",
    "or run on its devices: pt.jit(..., devices=...)",
)


class Jitted(Generic[R]):
    """A partitioned function with the signature of the original; made by `pt.jit`.

    Like a `jax.jit` function, it accepts NumPy arrays and numbers where the original takes `jax.Array`.
    """

    __name__: str

    def __init__(
        self,
        fn: Callable[..., R],
        mesh: Mesh,
        tactics: Sequence[Tactic],
        static_argnames: str | Sequence[str],
        donate_argnames: str | Sequence[str],
        devices: Sequence[Device] | None,
    ) -> None:
        function = Function.of(fn, static_argnames)
        self.fn = fn
        self.mesh = mesh_given(mesh)
        self.tactics = tactics_given(tactics)
        self.static = function.static
        self.devices = devices
        self.bound: tuple[object, ...] = ()
        functools.update_wrapper(self, fn, updated=())
        self.signature = function.signature
        self.donated = donated(function, donate_argnames)
        self.made: dict[int, JitWrapped] = {}

    def __repr__(self) -> str:
        name = getattr(self.fn, "__name__", "function")
        of = f" of {shown(self.bound[0])}" if self.bound else ""
        return f"<{name}{of}, partitioned for {self.mesh} by {len(self.tactics)} tactics>"

    def __get__(self, instance: object, owner: type | None = None) -> Jitted[R]:
        """As a method: `self` is the first argument, like any other."""
        if instance is None:
            return self
        method = copy.copy(self)
        method.bound = (instance,)
        return method

    @property
    def __signature__(self) -> inspect.Signature:
        """What is left to give: a method has its first argument."""
        return self.signature.replace(parameters=list(self.signature.parameters.values())[len(self.bound) :])

    @property
    def jitted(self) -> JitWrapped:
        """The `jax.jit` function; a new one if an op was redefined, because the programs that it traced may be stale."""
        if definitions.replaced not in self.made:
            self.made.clear()
            made = jax.jit(self.partitioned(), static_argnames=self.static, donate_argnames=self.donated)
            self.made[definitions.replaced] = made
        return self.made[definitions.replaced]

    def partitioned(self) -> Callable[..., R]:
        """The function that JAX traces: it plans for its arguments and runs the plan."""

        @functools.wraps(self.fn)
        def call(*args: object, **kwargs: object) -> R:
            plan = self.planned(args, kwargs)
            warn_of_conflicts(plan)
            traced = plan.source.traced
            leaves = [*traced.flatten(args, kwargs), *traced.consts]
            return cast(R, traced.unflatten(Compiled(plan, self.devices).program(*leaves)))

        return call

    def planned(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Plan:
        """The plan for these arguments, the object of a method among them."""
        return make_plan(self.fn, self.mesh, *args, static_argnames=self.static, **kwargs).apply(*self.tactics)

    def plan(self, *args: object, **kwargs: object) -> Plan:
        """The plan for these arguments: arrays, or `jax.ShapeDtypeStruct`s."""
        return self.planned((*self.bound, *args), kwargs)

    def __call__(self, *args: object, **kwargs: object) -> R:
        args = (*self.bound, *args)
        try:
            return cast(R, self.jitted(*args, **kwargs))
        except (ValueError, TypeError) as error:
            there = device_mesh(self.mesh, self.devices)
            problem = misplaced(self.planned(args, kwargs), args, kwargs, there, _CURES)
            raise (problem or error) from None

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """JAX's `Lowered`, as `jax.jit(f).lower` gives it."""
        return cast(Any, self.jitted).lower(*self.bound, *args, **kwargs)

    # Any: one tree of shardings for each argument, with the structure of the argument.
    def in_shardings(self, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """The shardings that the plan wants for the positional arguments, as trees like theirs. Pass static arguments by name.

        params, batch = jax.device_put((params, batch), f.in_shardings(params, batch))
        """
        plan = self.plan(*args, **kwargs)
        traced = plan.source.traced
        leaves = plan.compile(self.devices).in_shardings[: len(traced.in_avals)]
        trees = dict.fromkeys(traced.static) | dict(
            zip(traced.arguments, tree.tree_unflatten(traced.in_tree, leaves), strict=True)
        )
        wanted = inspect.BoundArguments(traced.function.signature, OrderedDict(trees)).args
        return wanted[len(self.bound) : len(self.bound) + len(args)]


class Options(TypedDict, total=False):
    """The parameters of `jit` beside the function and the mesh."""

    tactics: Sequence[Tactic]
    static_argnames: str | Sequence[str]
    donate_argnames: str | Sequence[str]
    devices: Sequence[Device] | None


@overload
def jit(fn: Callable[..., R], *, mesh: Mesh, **options: Unpack[Options]) -> Jitted[R]: ...
@overload
def jit(fn: None = None, *, mesh: Mesh, **options: Unpack[Options]) -> Callable[[Callable[..., R]], Jitted[R]]: ...
def jit(
    fn: Callable[..., R] | None = None,
    *,
    mesh: Mesh,
    tactics: Sequence[Tactic] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnames: str | Sequence[str] = (),
    devices: Sequence[Device] | None = None,
) -> Jitted[R] | Callable[[Callable[..., R]], Jitted[R]]:
    """Partition `fn` by the tactics and compile it for the mesh, at the first call with each kind of arguments.

    Also a decorator: `@pt.jit(mesh=..., tactics=[...])`. `vmap`, an outer `jit` and all derivatives of the result are those
    of `fn`, partitioned by the same tactics. A call raises Error if a tactic does not fit or the mesh needs more devices
    than there are.

        step = jax.jit(train_step)   -->   step = pt.jit(train_step, mesh=mesh, tactics=[...])
    """

    def partitioned(fn: Callable[..., R]) -> Jitted[R]:
        return Jitted(fn, mesh, tactics, static_argnames, donate_argnames, devices)

    return partitioned if fn is None else partitioned(fn)
