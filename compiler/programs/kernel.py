"""`pt.kernel`: an SPMD kernel on a device set of its own.

Within a `pt.program`, a call of a kernel is a node of the program's graph, and its derivatives and batches are kernels on the
same set. Elsewhere it runs at once, on the devices of its set.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

from jax import Array
from jax.sharding import Mesh as DeviceMesh, NamedSharding, PartitionSpec

from ...dialects.ground.errors import Error
from ...dialects.ground.validation import refused
from ...dialects.mesh import Mesh
from ..api.jit import Jitted
from ..api.plan import Plan, Tactic
from ..inputs.arguments import Method
from ..jax_private import Tracer, is_batched, is_staged, jax, traced_apart
from ..plan.state import State
from ..run.addressable import devices_of
from ..run.compiled import device_mesh
from ..run.controller import Issued
from ..run.device_sets import here
from ..run.extended_shard_map import described, on_no_mesh, on_own_devices
from ..run.partitioned import Partitioned
from ..run.transfers import put

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")
Left = ParamSpec("Left")

_IS_READ = ContextVar("is_read", default=False)
_WITHIN: ContextVar[str] = ContextVar("within", default="")
"""The name of the kernel whose function is being traced."""


def is_read() -> bool:
    """Whether a program is being traced."""
    return _IS_READ.get()


@contextmanager
def reading() -> Generator[None]:
    """A context in which calls of kernels are recorded, and not run. What `jax.jit` has traced outside is traced again."""
    before = _IS_READ.set(True)
    try:
        with traced_apart("a program of kernels"), on_no_mesh():
            yield
    finally:
        _IS_READ.reset(before)


class Kernel(Method, Generic[P, R]):
    """A function on a device set, made by `pt.kernel`. Call it like the function."""

    __name__: str

    def __init__(self, fn: Callable[P, R] | Plan[R], mesh: Mesh, tactics: Sequence[Tactic], static: Sequence[str]) -> None:
        self.mesh = mesh
        self.fixed = cast("Plan[R]", fn) if isinstance(fn, Plan) else None
        self.jitted = None if isinstance(fn, Plan) else Jitted(fn, mesh, tactics, {"static_argnames": static})
        self.recorded = dict[int, Partitioned]()
        """The programs of plans, for graphs. A program keeps its plan alive."""
        self.running = dict[tuple[int, ...], Running]()
        function = self.jitted.function if self.jitted is not None else cast("Plan[R]", fn).source.traced.function
        functools.update_wrapper(self, cast("Callable[P, R]", function.fn), updated=())
        self.__name__, self.signature = function.name, function.signature

    def __repr__(self) -> str:
        return f"<kernel {self.__name__} on {self.mesh}>"

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Kernel[P, R]: ...
    @overload
    def __get__(self: Kernel[Concatenate[Owner, Left], R], instance: Owner, owner: type | None = None) -> Kernel[Left, R]: ...
    # Any: the parameters of a method are those of the function but one.
    def __get__(self, instance: object, owner: type | None = None) -> Kernel[Any, R]:
        """Binds a method: the instance becomes the first argument, as for any function. A plan is no method."""
        return self if instance is None or self.fixed is not None else self.bind_to(instance)

    def plan(self, /, *args: object, **kwargs: object) -> Plan[R]:
        """The plan for these arguments: arrays, or `jax.ShapeDtypeStruct`s.

        Raises Error if the function calls another kernel.
        """
        before = _WITHIN.set(self.__name__)
        try:
            return self._planned((*self.bound, *args), kwargs)
        finally:
            _WITHIN.reset(before)

    def _planned(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Plan[R]:
        return cast("Plan[R]", self.fixed) if self.jitted is None else self.jitted.plan(*args, **dict(kwargs))

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function: within a program it becomes a node of the graph, and elsewhere it runs at once.

        Arguments on other devices are moved to those of the set. Returns before the devices are done.
        """
        if outer := _WITHIN.get():
            title = f"the kernel `{self.__name__}` is called within the kernel `{outer}`, which runs on one device set"
            raise Error(
                title, helps=["call both in a program", f"or call the function of `{self.__name__}`, and not the kernel"]
            )
        plan = self.plan(*args, **kwargs)
        traced = plan.source.traced
        leaves = [*traced.flatten((*self.bound, *args), kwargs), *traced.consts]
        return cast(R, traced.unflatten(self._record(plan, leaves) if is_read() else self._run(plan, leaves)))

    def _record(self, plan: State, leaves: Sequence[Array]) -> Sequence[Array]:
        """Makes the call a part of the program that is being traced. Nothing runs, so no devices are needed."""
        if id(plan) not in self.recorded:
            self.recorded[id(plan)] = Partitioned(plan, described(self.mesh))
        return self.recorded[id(plan)](*leaves)

    def _run(self, plan: State, leaves: Sequence[Array]) -> Sequence[Array]:
        """Runs the kernel on the devices of its set."""
        devices = here(self.mesh)
        key = id(plan), *(device.id for device in devices)
        with on_no_mesh(), on_own_devices():
            if key not in self.running:
                self.running[key] = Running.of(plan, device_mesh(self.mesh, devices))
            running = self.running[key]
            return running.issued(*(map(moved, leaves, running.shardings)))


@dataclass(frozen=True)
class Running:
    """A kernel on the devices of its set."""

    issued: Issued[Sequence[Array]]
    shardings: Sequence[NamedSharding]

    @classmethod
    def of(cls, plan: State, mesh: DeviceMesh) -> Self:
        program = Partitioned(plan, mesh)
        # Now, not within JAX, so that the errors of lowering are raised as they are.
        program.lower()

        def call(*leaves: Array) -> Sequence[Array]:
            return program(*leaves)

        call.__name__ = plan.source.traced.name
        return cls(Issued(call.__name__, call, mesh.size), program.shardings[0])


def moved(leaf: Array, wanted: NamedSharding) -> Array:
    """An argument on the devices on which it is wanted. Within `jax.jit`, JAX places it."""
    if isinstance(leaf, Tracer):
        # The batch may be any dim of the array: it is whole on each device.
        there = NamedSharding(wanted.mesh, PartitionSpec()) if is_batched(leaf) else wanted
        return leaf if is_staged(leaf) else _put_traced(leaf, there)
    at = getattr(leaf, "sharding", None)
    is_elsewhere = at is not None and leaf.committed and devices_of(at) != devices_of(wanted)
    return put(leaf, wanted) if is_elsewhere else leaf


def _put_traced(leaf: Array, wanted: NamedSharding) -> Array:
    """An argument on other devices, within a derivative or a batch. Raises Error if it lies in another process."""
    try:
        return jax.device_put(leaf, wanted)
    except (NotImplementedError, ValueError) as error:
        if jax.process_count() == 1:
            raise
        title = "a value that lies in one process is wanted in another one, within a transformation of JAX"
        helps = ["make one graph of all: pt.program(jax.value_and_grad(f)), pt.program(jax.vmap(f))"]
        raise Error(title, helps=helps) from error


@overload
def kernel(
    fn: Callable[P, R], *, devices: Mesh, tactics: Sequence[Tactic] = (), static_argnames: Sequence[str] = ()
) -> Kernel[P, R]: ...
@overload
def kernel(fn: Plan[R]) -> Kernel[..., R]: ...
@overload
def kernel(
    fn: None = None, *, devices: Mesh, tactics: Sequence[Tactic] = (), static_argnames: Sequence[str] = ()
) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
# Any: the overloads have the types.
def kernel(
    fn: Any = None, *, devices: Mesh | None = None, tactics: Sequence[Tactic] = (), static_argnames: Sequence[str] = ()
) -> Any:
    """A function, or a plan, as an SPMD kernel on a device set: `pt.devices(2)`, or a mesh with a name and axes.

    Without tactics every device of the set computes all of it. Also a decorator: `@pt.kernel(devices=..., tactics=[...])`. A
    plan is on its own mesh, and takes the arguments with which it was made. Raises Error for devices that are no mesh.

        a = pt.kernel(lambda x: x * 2.0, devices=pt.devices(2))
    """
    if isinstance(fn, Plan):
        if devices is not None or tactics or static_argnames:
            helps = ["make the plan on these devices: pt.plan(fn, devices, *args)", "or give the function, and not a plan"]
            raise Error("a plan has a mesh and tactics of its own", helps=helps)
        own = cast("Plan[Any]", fn)
        return Kernel(own, own.mesh, (), ())
    if not isinstance(devices, Mesh) or not len(devices):
        raise refused("devices", "a device set", devices, "make one: pt.devices(2), or a mesh with axes: pt.Mesh(data=2)")
    on = devices

    def made(fn: Callable[P, R]) -> Kernel[P, R]:
        return Kernel(fn, on, tactics, static_argnames)

    return made if fn is None else made(fn)
