"""`pt.jit`: partition and run a function in one call.

A plan is made once for each kind of arguments: their tree, shapes, dtypes, weak types and static values. A call, `plan`,
`lower` and `in_shardings` share it. JAX's own cache finds what was compiled, so a call costs as much as one of `jax.jit`.
"""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from jax import Array
from jax.sharding import NamedSharding
from jax.stages import Lowered, Traced as JaxTraced

from ...dialects.definitions.registry import definitions
from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error, did_you_mean, warn
from ...dialects.mesh import Mesh
from ..inputs.arguments import Method, UserFunction, donated, leaf_names, names_at
from ..inputs.checks import mesh_given, shown, tactics_given
from ..jax_private import Device, Tracer, jax, tree
from ..run.boundary_resharding import PlacementWarning, gathered, moved_arguments
from ..run.compiled import Compiled, cannot_run, device_mesh, misplaced
from ..run.controller import Issued
from ..run.extended_shard_map import Gathered
from ..trace.trace import trace as trace_function
from .plan import Plan, Tactic, start, what_is_open

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")
Left = ParamSpec("Left")

# For arguments that are committed to other devices.
_CURES = (
    "leave it uncommitted, or move all: args = jax.device_put(args, f.in_shardings(*args))",
    "or run on its devices: pt.jit(..., devices=...)",
)


class Jitted(Method, Generic[P, R]):
    """A partitioned function with the signature of the original; made by `pt.jit`.

    Like a `jax.jit` function, it accepts NumPy arrays and numbers where the original takes `jax.Array`.
    """

    __name__: str

    def __init__(
        self,
        fn: Callable[P, R],
        mesh: Mesh,
        tactics: Sequence[Tactic],
        options: Options,
    ) -> None:
        function = UserFunction.of(fn, _named(fn, options, "static"))
        self.fn = fn
        self.mesh = mesh_given(mesh)
        self.tactics = tactics_given(tactics)
        self.static = function.static
        self.function = function
        self.devices = options.get("devices")
        self.passed_on = {name: given for name, given in options.items() if name in PASSED_ON}
        functools.update_wrapper(self, fn, updated=())
        self.signature = function.signature
        self.donated = donated(function, _named(fn, options, "donate"))
        self.reshard: object = options.get("reshard", "warn")
        if not isinstance(self.reshard, str) or self.reshard not in _RESHARD:
            helps = ["`warn` says once for each kind of arguments what is moved, `error` refuses the call"]
            raise Error(f'`reshard` is "warn", "error" or "allow", got {shown(self.reshard)}', helps=helps)
        self.made: dict[int, Issued[R]] = {}
        self.plans: dict[Hashable, Plan[R]] = {}
        self.calls = Calls()

    def __repr__(self) -> str:
        name = getattr(self.fn, "__name__", "function")
        of = f" of {shown(self.bound[0])}" if self.bound else ""
        return f"<{name}{of}, partitioned for {self.mesh} by {counted(len(self.tactics), 'tactic')}>"

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Jitted[P, R]: ...
    @overload
    def __get__(self: Jitted[Concatenate[Owner, Left], R], instance: Owner, owner: type | None = None) -> Jitted[Left, R]: ...
    # Any: the parameters of a method are those of the function but one.
    def __get__(self, instance: object, owner: type | None = None) -> Jitted[Any, R]:
        """Binds a method: the instance becomes the first argument, as for any function."""
        return self if instance is None else self.bind_to(instance)

    @property
    def _issued(self) -> Issued[R]:
        """What JAX compiles. It is made anew when an op is redefined, because programs that JAX has traced may be stale."""
        if definitions.replaced not in self.made:
            self.made.clear()
            how = {"static_argnames": self.static, "donate_argnames": self.donated, **self.passed_on}
            made = Issued(self.function.name, self._partitioned(), self.mesh.size, **how)
            self.made[definitions.replaced] = made
        return self.made[definitions.replaced]

    def _partitioned(self) -> Callable[..., R]:
        """The function that JAX traces: it makes the plan for its arguments, and runs it."""

        @functools.wraps(self.fn)
        def call(*args: object, **kwargs: object) -> R:
            plan = self._planned(args, kwargs)
            traced = plan.source.traced
            leaves = [*traced.flatten(args, kwargs), *traced.consts]
            compiled = self._compiled(plan)
            self.calls.is_idle |= not (plan.trace or plan.table.axes or plan.mesh.size == 1)
            self.calls.wanted[self._kind(args, kwargs, placed=False)] = compiled.in_shardings
            compiled.program.gathered = self.calls.gathered
            results = compiled.program(*leaves)
            if self.calls.gathered and self.reshard == "error":
                self._say_what_is_gathered()
            return cast(R, traced.unflatten(results))

        return call

    def _planned(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Plan[R]:
        """The plan for these arguments, with a method's instance among them. It is made once for each kind of arguments."""
        key = self._kind(args, kwargs)
        found = self.plans.get(key)
        if found is None:
            traced = trace_function(self.fn, *args, static_argnames=self.static, **kwargs)
            plan = start(replace(traced, function=replace(traced.function, donated=self.donated)), self.mesh)
            found = self.plans[key] = plan.apply(*self.tactics)
        return found

    def _kind(self, args: Sequence[object], kwargs: Mapping[str, object], placed: bool = True) -> Hashable:
        """The key of a plan: the arguments' tree, types and shardings, the static values, and JAX's settings.

        Without `placed`, as in a call, the shardings are left out: a plan made there does not know them.
        """
        kind, leaves = self.function.kind(args, kwargs)
        # A sharding is an annotation, which a tactic may apply; inside of a call there are none.
        said = tuple(leaf.sharding if placed and _is_placed(leaf) else None for leaf in cast("list[Array]", leaves))
        return kind, said

    def plan(self, /, *args: object, **kwargs: object) -> Plan[R]:
        """The plan for these arguments: arrays, or `jax.ShapeDtypeStruct`s."""
        return self._planned((*self.bound, *args), kwargs)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        given = (*self.bound, *args)
        issued = self._issued
        # It looks at each kind of arguments once.
        if self.reshard == "error" and (key := self._kind(given, kwargs)) not in self.calls.fine:
            if (problem := self._moved(given, kwargs)) is not None:
                raise problem
            self.calls.fine.add(key)
        try:
            result = issued(*given, **kwargs)
        except (ValueError, TypeError, SystemError, RecursionError) as error:
            # JAX has the last two for trees that are nested too deeply.
            there = device_mesh(self.mesh, self.devices)
            problem = misplaced(self._planned(given, kwargs), given, kwargs, there, _CURES)
            raise (problem or error) from None
        except AttributeError as error:
            raise (cannot_run(self.__name__, device_mesh(self.mesh, self.devices)) or error) from None
        self._warn_of_no_tactics()
        if self.calls.gathered:
            self._say_what_is_gathered()
        if self.reshard == "warn" and self.calls.is_first(issued) and (problem := self._moved(given, kwargs)) is not None:
            warn(PlacementWarning(str(problem)))
        return result

    def _moved(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Error | None:
        """The error for arguments that a call moves; None if all arguments lie as the plan wants them."""
        bound, _ = self.function.bind(args, kwargs)
        leaves = tree.tree_leaves(tuple(bound.arguments.values()))
        key = self._kind(args, kwargs, placed=False)
        wanted = self.calls.wanted.get(key)
        if wanted is None:
            wanted = self.calls.wanted[key] = Compiled(self._planned(args, kwargs), self.devices).in_shardings
        return moved_arguments(self.function, leaf_names(bound.arguments), leaves, wanted)

    def _say_what_is_gathered(self) -> None:
        """Reports once, at the caller's line, that a call gathers results although the plan does not."""
        if self.calls.told or self.reshard == "allow":
            return
        problem = gathered(self.function, self.calls.gathered)
        if self.reshard == "error":
            # JAX does not keep what it has traced, so the next such call is here again.
            self.calls.gathered.clear()
            raise problem
        self.calls.told = True
        warn(PlacementWarning(str(problem)))

    def _compiled(self, plan: Plan[R]) -> Compiled[R]:
        """Compiles a plan, as `plan.compile` does.

        Each open conflict or annotation is warned of only once for this function.
        """
        for each in what_is_open(plan):
            if str(each) not in self.calls.open:
                self.calls.open.add(str(each))
                warn(each)
        return Compiled[R](plan, self.devices)

    def _warn_of_no_tactics(self) -> None:
        """Warns once, at the caller's line, if there are no tactics, so that every device computes everything."""
        if self.calls.warned or not self.calls.is_idle:
            return
        self.calls.warned = True
        text = f"`pt.jit` of `{self.__name__}` has no tactics: each of the {self.mesh.size} devices computes all of it. "
        warn(PlacementWarning(f'{text}Give some, such as tactics=[pt.DataParallel("data")]'))

    def trace(self, /, *args: object, **kwargs: object) -> JaxTraced:
        """Returns JAX's `Traced`, as `jax.jit(f).trace` does. `jax.export` accepts functions that have this method."""
        traced = cast(Any, self._issued.jitted).trace(*self.bound, *args, **kwargs)
        self._warn_of_no_tactics()
        return traced

    def lower(self, /, *args: object, **kwargs: object) -> Lowered:
        """Returns JAX's `Lowered`, as `jax.jit(f).lower` does."""
        lowered = cast(Any, self._issued.jitted).lower(*self.bound, *args, **kwargs)
        self._warn_of_no_tactics()
        return lowered

    # Any: a tree of `jax.ShapeDtypeStruct`s, with the structure of the result.
    def eval_shape(self, /, *args: object, **kwargs: object) -> Any:
        """The shapes and the shardings of the results, as `jax.jit(f, out_shardings=...).eval_shape` gives them.

        Of a training step, those of the next state: what a checkpoint is restored to.
        """
        plan = self.plan(*args, **kwargs)
        traced, ends = plan.source.traced, self._compiled(plan).out_shardings
        leaves = [
            jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=end, weak_type=each.weak_type)
            for each, end in zip(traced.out_avals, ends, strict=True)
        ]
        return tree.tree_unflatten(traced.out_tree, leaves)

    # Any: one tree of shardings for each argument, with the structure of the argument.
    def in_shardings(self, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """The shardings that the plan wants for the positional arguments, as trees like theirs. Pass static arguments by name.

        params, batch = jax.device_put((params, batch), f.in_shardings(params, batch))
        """
        plan = self.plan(*args, **kwargs)
        traced = plan.source.traced
        leaves = self._compiled(plan).in_shardings[: len(traced.in_avals)]
        trees = dict.fromkeys(traced.static) | dict(
            zip(traced.arguments, tree.tree_unflatten(traced.in_tree, leaves), strict=True)
        )
        wanted = inspect.BoundArguments(traced.function.signature, OrderedDict(trees)).args
        return wanted[len(self.bound) : len(self.bound) + len(args)]


@dataclass
class Calls:
    """What a function remembers about its calls. Bound methods of one function share it.

    JAX counts the kinds of arguments that it has seen. Only when that count has grown is there anything to check.
    """

    wanted: dict[Hashable, list[NamedSharding]] = field(default_factory=dict[Hashable, list[NamedSharding]])
    fine: set[Hashable] = field(default_factory=set[Hashable])
    """The kinds of arguments, with their shardings, for which nothing is moved."""
    seen: int = 0
    is_idle: bool = False
    """Whether some call had a plan by which every device computes everything."""
    warned: bool = False
    open: set[str] = field(default_factory=set[str])
    """The open conflicts and annotations of which the function has warned."""
    gathered: list[Gathered] = field(default_factory=list[Gathered])
    """Results that calls have gathered, because the program's mesh cannot express their layouts."""
    told: bool = False

    def is_first(self, issued: Issued[R]) -> bool:
        """Whether the last call was the first one with its kind of arguments."""
        before, self.seen = self.seen, issued.signatures
        return self.seen != before


class Options(TypedDict, total=False):
    """The parameters of `jit` beside the function, the mesh and the tactics: those of `jax.jit` that a plan does not decide."""

    static_argnames: str | Sequence[str]
    static_argnums: int | Sequence[int]
    donate_argnames: str | Sequence[str]
    donate_argnums: int | Sequence[int]
    keep_unused: bool
    inline: bool
    compiler_options: Mapping[str, Any] | None
    devices: Sequence[Device] | None
    reshard: Literal["warn", "error", "allow"]


PASSED_ON = ("keep_unused", "inline", "compiler_options")
"""The options that are passed to `jax.jit` unchanged."""

_DECIDED = {
    "in_shardings": 'tactics lay arguments out: pt.Tile({"x": 0}, "data"); `f.in_shardings(*args)` is what they decide',
    "out_shardings": 'tactics lay results out: pt.Tile({"result": 0}, "data")',
    "device": "give the devices of the mesh: devices=jax.devices()",
    "backend": 'give the devices of the mesh: devices=jax.devices("gpu")',
    "abstracted_axes": "a plan is made for the shapes of each call",
}
"""Parameters of `jax.jit` that `pt.jit` does not have, each with what to use instead."""


def _checked(options: Options) -> Options:
    """Raises Error for an option that `jit` does not have, with what to give instead."""
    known = Options.__annotations__
    for name in options:
        if name in _DECIDED:
            raise Error(f"`pt.jit` does not take `{name}`: the plan decides it", helps=[_DECIDED[name]])
        if name not in known:
            raise Error(f"`pt.jit` has no option `{name}`", helps=did_you_mean(name, known, f"it takes {', '.join(known)}"))
    return options


_RESHARD = ("warn", "error", "allow")
"""The values of `reshard`: what to do about arguments that a call moves."""


def _named(fn: Callable[..., object], options: Options, side: str) -> str | Sequence[str]:
    """The names of the static or donated arguments, which may also be given by number."""
    by_name, by_number = ("static_argnames", "static_argnums") if side == "static" else ("donate_argnames", "donate_argnums")
    numbers = cast("int | Sequence[int]", options.get(by_number, ()))
    names = cast("str | Sequence[str]", options.get(by_name, ()))
    if isinstance(numbers, Sequence) and not numbers:
        return names
    return tuple(dict.fromkeys((*((names,) if isinstance(names, str) else names), *names_at(fn, numbers, by_number))))


def _is_placed(leaf: object) -> bool:
    """Whether an argument has a sharding that its caller has chosen."""
    is_array = isinstance(leaf, Array) and not isinstance(leaf, Tracer)
    return isinstance(leaf, jax.ShapeDtypeStruct) or (is_array and bool(getattr(leaf, "committed", False)))


@overload
def jit(fn: Callable[P, R], *, mesh: Mesh, tactics: Sequence[Tactic] = (), **options: Unpack[Options]) -> Jitted[P, R]: ...
@overload
def jit(
    fn: None = None, *, mesh: Mesh, tactics: Sequence[Tactic] = (), **options: Unpack[Options]
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    fn: Callable[P, R] | None = None, *, mesh: Mesh, tactics: Sequence[Tactic] = (), **options: Unpack[Options]
) -> Jitted[P, R] | Callable[[Callable[P, R]], Jitted[P, R]]:
    """Partition `fn` by the tactics and compile it for the mesh, at the first call with each kind of arguments.

    Also a decorator: `@pt.jit(mesh=..., tactics=[...])`. `vmap`, an outer `jit` and all derivatives of the result are those
    of `fn`, partitioned by the same tactics. Beside `devices` it takes the options of `jax.jit`: `static_argnames`,
    `static_argnums`, `donate_argnames`, `donate_argnums`, `keep_unused`, `inline` and `compiler_options`. Raises Error for its
    others, which the plan decides. A call raises Error if a tactic does not fit or the mesh needs more devices than there are.

    To a type checker it is a function with the parameters and the result of `fn`.

    An argument that is placed otherwise than the plan wants is moved in each call. `reshard="warn"` says so, once for each kind
    of arguments; `"error"` raises Error before the call, and `"allow"` says nothing. `"error"` looks at all
    arguments in each call, which takes longer than a call does otherwise: use `"warn"` where calls must be quick.

        step = jax.jit(train_step)   -->   step = pt.jit(train_step, mesh=mesh, tactics=[...])
    """
    chosen = _checked(options)

    def partitioned(fn: Callable[P, R]) -> Jitted[P, R]:
        return Jitted(fn, mesh, tactics, chosen)

    return partitioned if fn is None else partitioned(fn)
