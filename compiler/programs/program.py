"""`pt.program`: a Python function that calls kernels, as one dataflow graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from jax import Array

from ...dialects.definitions.registry import definitions
from ...dialects.ground.validation import refused
from ...dialects.mesh import Mesh
from ..graph.graph import Graph
from ..graph.run import CompiledGraph
from ..inputs.arguments import Method, UserFunction
from ..jax_private import ArrayImpl, Device, Tracer, is_staged, trace_context, trace_state_clean, tree
from ..run.device_sets import given
from ..trace.trace import trace
from .calls import read_calls
from .joined import join
from .kernel import is_read, reading

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")
Left = ParamSpec("Left")


class Program(Method, Generic[P, R]):
    """A function that calls kernels, made by `pt.program`. Call it like the function.

    Its first call with each kind of arguments traces it, joins its kernels to a graph, and compiles all of them.
    """

    __name__: str

    def __init__(
        self,
        fn: Callable[P, R],
        static: Sequence[str],
        devices: Mapping[str, Sequence[Device]] | None,
        out_on: Mesh | None = None,
    ) -> None:
        self.function = UserFunction.of(fn, static)
        self.fn, self.static, self.devices, self.out_on = fn, static, devices, out_on
        self.graphs = dict[Hashable, Graph]()
        self.compiled = dict[Hashable, CompiledGraph]()
        self.signature = self.function.signature
        functools.update_wrapper(self, fn, updated=())

    def __repr__(self) -> str:
        return f"<program {self.function.name}>"

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Program[P, R]: ...
    @overload
    def __get__(self: Program[Concatenate[Owner, Left], R], instance: Owner, owner: type | None = None) -> Program[Left, R]: ...
    # Any: the parameters of a method are those of the function but one.
    def __get__(self, instance: object, owner: type | None = None) -> Program[Any, R]:
        """Binds a method: the instance becomes the first argument, as for any function."""
        return self if instance is None else self.bind_to(instance)

    def graph(self, /, *args: object, **kwargs: object) -> Graph:
        """The graph for these arguments: arrays, or `jax.ShapeDtypeStruct`s. It needs no devices."""
        return self._graph((*self.bound, *args), kwargs)

    def _graph(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Graph:
        key, _ = self.function.kind(args, kwargs)
        if key not in self.graphs:
            with reading():
                traced = trace(self.fn, *args, static_argnames=self.static, **kwargs)
            self.graphs[key] = join(traced, read_calls(traced.function, traced.jaxpr), self.out_on)
        return self.graphs[key]

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._call((*self.bound, *args), kwargs)

    def _call(self, args: Sequence[object], kwargs: Mapping[str, object]) -> R:
        # Any: with what is bound, the arguments are those of the function.
        fn: Callable[..., R] = self.fn
        if is_read():
            return fn(*args, **kwargs)
        leaves, structure = tree.tree_flatten((args, kwargs))
        quick = self._quick_kind(leaves, structure)
        if quick is not None and quick in self.compiled and trace_state_clean():
            return cast(R, self.compiled[quick](*args, **kwargs))
        traced = [leaf for leaf in leaves if isinstance(leaf, Tracer)]
        if any(map(is_staged, traced)) or (not traced and not trace_state_clean()):
            title = f"`{self.function.name}` is a program of kernels, and cannot be a part of a compiled function"
            helps = ["call it outside of `jax.jit`: it compiles all of its kernels itself"]
            helps += ["its derivative is a program: pt.program(jax.value_and_grad(f))"]
            raise self.function.error(title, *helps)
        if traced:
            # A derivative, or a batch, of each kernel.
            with given(self.devices):
                return fn(*args, **kwargs)
        key = self.function.kind(args, kwargs)[0] if quick is None else quick
        if key not in self.compiled:
            self.compiled[key] = self._graph(args, kwargs).compile(self.devices)
        return cast(R, self.compiled[key](*args, **kwargs))

    def _quick_kind(self, leaves: Sequence[object], structure: Hashable) -> Hashable | None:
        """A key that takes less time: for arrays of JAX, and no static values."""
        if self.static or any(type(leaf) is not ArrayImpl for leaf in leaves):
            return None
        return structure, *(cast(Array, leaf).aval for leaf in leaves), definitions.replaced, trace_context()


@overload
def program(
    fn: Callable[P, R],
    *,
    static_argnames: Sequence[str] = (),
    devices: Mapping[str, Sequence[Device]] | None = None,
    out_on: Mesh | None = None,
) -> Program[P, R]: ...
@overload
def program(
    fn: None = None,
    *,
    static_argnames: Sequence[str] = (),
    devices: Mapping[str, Sequence[Device]] | None = None,
    out_on: Mesh | None = None,
) -> Callable[[Callable[P, R]], Program[P, R]]: ...
# Any: the overloads have the types.
def program(
    fn: Any = None,
    *,
    static_argnames: Sequence[str] = (),
    devices: Mapping[str, Sequence[Device]] | None = None,
    out_on: Mesh | None = None,
) -> Any:
    """A function that calls kernels, as one dataflow graph of kernels and transfers. Also a decorator.

    JAX code between kernels runs where its operands are. A program of a derivative is `pt.program(jax.value_and_grad(f))`: one
    graph, in which the derivative of each kernel is a kernel on the same set. `devices` says which devices sets have, by name;
    the others have free ones. Results are where they are made or, with `out_on`, whole on each device of that set. A call
    raises Error, with the line, for code with operands on several device sets, and for kernels in a loop of JAX.

        @pt.program
        def f(v):
            x = a(v)
            return b(x), a(c(x))
    """

    if out_on is not None and not isinstance(out_on, Mesh):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused("out_on", "a device set", out_on, "give a set of the program: out_on=pt.devices(2)")

    def made(fn: Callable[P, R]) -> Program[P, R]:
        return Program(fn, static_argnames, devices, out_on)

    return made if fn is None else made(fn)
