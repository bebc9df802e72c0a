"""JAX as the tracer sees it: untyped modules, and the private names that Partita uses.

JAX annotates few of the functions that a tracer calls, and some of them are in private modules. Both are handled only here:
the modules below are `Any`; every private JAX name that Partita uses is listed, to be checked when JAX changes; and the
protocols describe the attributes of JAX's private types that Partita uses. All that differs between the versions of JAX that
Partita runs on is here too, so that the rest of the program knows one JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from inspect import getclosurevars
from types import CodeType
from typing import Any, Protocol, Self, TypeAlias, cast

from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive
from jax.stages import Wrapped

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
lax: Any = import_module("jax.lax")
tree: Any = import_module("jax.tree_util")
ad: Any = import_module("jax.interpreters.ad")
batching: Any = import_module("jax.interpreters.batching")
mlir: Any = import_module("jax.interpreters.mlir")
layout: Any = import_module("jax.experimental.layout")
set_xla_metadata: Any = import_module("jax.experimental.xla_metadata").set_xla_metadata

Tracer: Any = import_module("jax.core").Tracer
ArrayImpl: Any = import_module("jax._src.array").ArrayImpl
eager_constant_folding: Any = import_module("jax._src.config").eager_constant_folding
trace_context: Any = import_module("jax._src.config").trace_context
eval_context: Any = import_module("jax._src.core").eval_context
traced_apart: Any = jax.make_user_context("")
InternalFloatingPointError: Any = import_module("jax._src.api_util").InternalFloatingPointError
distributed_state: Any = import_module("jax._src.distributed").global_state
trace_state_clean: Any = import_module("jax._src.core").trace_state_clean
backends: Any = import_module("jax.extend.backend").backends
fancy_primitive_batchers: Any = import_module("jax._src.interpreters.batching").fancy_primitive_batchers
jaxprs_in_params: Any = import_module("jax.extend.core").jaxprs_in_params
shaped_abstractify: Any = import_module("jax._src.core").shaped_abstractify
core_primitive: Any = import_module("jax._src.core").Primitive
apply_primitive: Any = import_module("jax._src.dispatch").apply_primitive
ordered_effects: Any = import_module("jax._src.effects").ordered_effects
lowerings: Any = import_module("jax._src.interpreters.mlir")._lowerings
lower_fun: Any = import_module("jax._src.interpreters.mlir").lower_fun
platform_lowerings: Any = import_module("jax._src.interpreters.mlir")._platform_specific_lowerings
call_hi_primitive: Any = import_module("jax._src.hijax").call_hi_primitive_p
discharge_state: Any = import_module("jax._src.state.discharge").discharge_state
dce_jaxpr: Any = import_module("jax._src.interpreters.partial_eval").dce_jaxpr
internal_mutable_array_effect: Any = import_module("jax._src.core").internal_mutable_array_effect
get_concrete_mesh: Any = import_module("jax._src.mesh").get_concrete_mesh
empty_concrete_mesh: Any = import_module("jax._src.mesh").empty_concrete_mesh
# A version of JAX has it in one of these modules.
_HOLDERS = map(vars, map(import_module, ("jax._src.mesh", "jax._src.config")))
device_context: Any = next(each["device_context"] for each in _HOLDERS if "device_context" in each)
GatherScatterMode: Any = import_module("jax._src.lax.slicing").GatherScatterMode
linearize_jaxpr: Any = import_module("jax._src.interpreters.ad").linearize_jaxpr
prng: Any = import_module("jax._src.random.prng")
source_info_util: Any = import_module("jax._src.source_info_util")
Ref: Any = import_module("jax").Ref
RefEffect: Any = import_module("jax._src.state.types").RefEffect
ReadEffect: Any = import_module("jax._src.state.types").ReadEffect

Version: TypeAlias = tuple[int, ...]
RELEASE: str = jax.__version__
VERSION: Version = jax.__version_info__[:2]
OLDEST: Version = (0, 10)
"""The first version of JAX that Partita runs on."""

QUICK: Mapping[str, bool | int] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_parallel_codegen_split_count": 1,
    # XLA has only the other code generator since, and ends the process on an option that it does not know.
    **({"xla_cpu_use_fusion_emitters": False} if VERSION < (0, 11) else {}),
}
"""XLA's options for a program that runs once. Compiling then takes a quarter of the time, and the machine code is slower."""

_BROUGHT: Mapping[Version, str] = {
    (0, 11): "log2 one_minus_square program_order relayout unreduced_pmax unreduced_pmin",
    (0, 12): "pbroadcast_dynamic polynomial reduced_vary_cast thunky.inline_constant vary_unreduced_cast",
}
_DROPPED: Mapping[Version, str] = {
    (0, 11): """call closed_call core_map fusible pbroadcast_done pbroadcast_start psum_start shard_alike unreduced_psum_start
        unreduced_reduce_scatter_start""",
    (0, 12): "reduced_vary_cast_p vary_unreduced_cast_p",
}
FIRST_WITH: Mapping[str, Version] = {name: version for version, names in _BROUGHT.items() for name in names.split()}
"""The version of JAX that introduced a primitive. Primitives that all supported versions have are left out."""
FIRST_WITHOUT: Mapping[str, Version] = {name: version for version, names in _DROPPED.items() for name in names.split()}
"""The first version of JAX that no longer has a primitive."""
ABSENT = frozenset(
    name
    for name in {*FIRST_WITH, *FIRST_WITHOUT}
    if not FIRST_WITH.get(name, OLDEST) <= VERSION < FIRST_WITHOUT.get(name, (*VERSION, 1))
)
"""The primitives that only other versions of JAX have."""


def lower_in_one_context() -> None:
    """Makes JAX lower all programs of this process in one MLIR context.

    JAX makes a context for each program, which takes half the time of lowering a small one. A context never forgets what it has
    seen, so this is for a process that lowers thousands of small programs and then ends.
    """
    lowering: Any = import_module("jax._src.interpreters.mlir")
    lowering.make_ir_context = cache(lowering.make_ir_context)


class Device(Protocol):
    """A JAX device. Its own class is in a library without types."""

    id: int


class PyTreeDef(Protocol):
    """The structure of a tree. Its own class is in a library without types."""

    num_leaves: int

    def children(self) -> Sequence[PyTreeDef]: ...


class Named(Protocol):
    """A `jax.named_scope` or a transformation."""

    @property
    def name(self) -> str: ...


class NameStack(Protocol):
    """The `jax.named_scope`s and transformations around an equation."""

    @property
    def stack(self) -> tuple[Named, ...]: ...
    def __add__(self, other: NameStack, /) -> NameStack: ...


class Traceback(Protocol):
    """The Python frames in which an equation was traced, innermost first."""

    def raw_frames(self) -> tuple[Sequence[CodeType], Sequence[int]]: ...


class SourceInfo(Protocol):
    """JAX's record of where an equation comes from."""

    @property
    def traceback(self) -> Traceback | None: ...
    @property
    def name_stack(self) -> NameStack: ...


class Frame(Protocol):
    """One frame of a traceback, with the columns of its expression, which count from 0."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


class Shaped(Protocol):
    """An array or an aval."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    # Any: a NumPy dtype, or an extended JAX dtype such as that of keys; they have no common type.
    @property
    def dtype(self) -> Any: ...


Factors: TypeAlias = "str | tuple[str, ...]"
"""A dim of a sharding rule: one factor, or a product of several, major to minor."""


class ShardingRule(Protocol):
    """The `SdyShardingRule` of a `custom_partitioning` call."""

    operand_mappings: Sequence[Sequence[Factors]]
    result_mappings: Sequence[Sequence[Factors]]
    factor_sizes: Mapping[str, int]
    reduction_factors: Sequence[str]
    need_replication_factors: Sequence[str]
    permutation_factors: Sequence[str]


class BlockMapping(Protocol):
    """How the steps of a Pallas grid read or write the blocks of one array."""

    array_aval: ShapedArray
    block_shape: Sequence[object]
    index_map_jaxpr: ClosedJaxpr
    origin: str
    transforms: Sequence[object]

    def replace(self, *, array_aval: ShapedArray) -> Self: ...


class GridMapping(Protocol):
    """The grid of a Pallas call, and the blocks of each array that its steps use."""

    grid: tuple[int, ...]
    grid_names: Sequence[object] | None
    local_grid_env: Sequence[object] | None
    vmapped_dims: Sequence[int]
    block_mappings: Sequence[BlockMapping]
    index_map_avals: Sequence[ShapedArray]
    scratch_avals: Sequence[ShapedArray]
    num_index_operands: int
    num_inputs: int
    num_dynamic_grid_bounds: int

    def replace(self, *, grid: tuple[int, ...], block_mappings: tuple[BlockMapping, ...]) -> Self: ...


# Any: a module without types, like those above.
def pallas() -> Any:
    """Returns the Pallas module, which any program with a kernel has imported already."""
    return import_module("jax.experimental.pallas")


def python_lowering(primitive: Primitive) -> Callable[..., list[Array]] | None:
    """Returns the Python function by which JAX lowers a primitive, as one that returns a list.

    Returns None if the rule emits operations. JAX keeps only the rule that `lower_fun` makes of such a function, so the
    function is read from the rule's closure. A call that replaces itself by other primitives before it is lowered, as those of
    sparse arrays since JAX 0.12, has no rule.
    """
    if primitive is call_hi_primitive:
        return call_hi_primitive.to_lojax
    rule = getattr(lowerings.get(primitive), "rule", None)
    if rule is None or getattr(rule, "__qualname__", "") != _LOWERED_BY_TRACING:
        return None
    made_of = getclosurevars(rule).nonlocals
    return _listed(made_of["fun"], made_of["multiple_results"])


def python_evaluation(primitive: Primitive) -> Callable[..., list[Array]] | None:
    """The function by which JAX evaluates a primitive, made to return a list.

    None if JAX compiles the primitive, or has none.
    """
    rule = getattr(primitive, "impl", None)
    compiled = getattr(rule, "func", None) is apply_primitive
    missing = rule is None or getattr(rule, "__func__", None) is core_primitive.impl
    return None if rule is None or compiled or missing else _listed(rule, primitive.multiple_results)


def signatures(jitted: Wrapped) -> int:
    """The number of kinds of arguments, by type and sharding, for which a `jax.jit` function has a cached fast dispatch."""
    return cast(int, cast(Any, jitted)._cache_size())


def is_staged(tracer: object) -> bool:
    """Whether a tracer is a variable of a program that JAX writes down, as `jax.jit` does, or is made of one."""
    return any(isinstance(each, _DynamicJaxprTracer) for each in _layers(tracer, "primal", "val"))


def is_batched(tracer: object) -> bool:
    """Whether a tracer stands for a batch, or has one as its tangent: its arrays have more dims than it shows."""
    return any(isinstance(each, _BatchTracer) for each in _layers(tracer, "primal", "tangent", "val"))


def _layers(tracer: object, *parts: str) -> Iterator[object]:
    """A tracer, and the tracers that are these parts of it: there are several where transformations are nested."""
    if isinstance(tracer, Tracer):
        yield tracer
        for name in parts:
            yield from _layers(getattr(tracer, name, None), *parts)


def with_counts(eqn: JaxprEqn) -> JaxprEqn:
    """Adds the parameters `num_consts` and `num_carry` to a `scan`. Since JAX 0.12 they are in its trees of operands."""
    if "ft_in" not in eqn.params:
        return eqn
    consts, carry, _ = map(len, eqn.params["ft_in"].unpack())
    return cast(Any, eqn).replace(params={**eqn.params, "num_consts": consts, "num_carry": carry})


def groups_as_lists() -> AbstractContextManager[object]:
    """A context in which collectives are lowered with lists of devices, as before JAX 0.11, and not with axes of a mesh.

    XLA rewrites the axes of all meshes of a program as axes of one mesh. XLA of JAX 0.12 ends the process if two parts of one
    axis of that mesh become neighbours and are not merged: `data*model` of data=4, model=2 becomes `model * data.0:2 *
    data.1:2` of model=2, data=4.
    """
    return nullcontext() if _mesh_axes_groups is None else _mesh_axes_groups(False)


GIVEN, MADE = "partita: a gradient to pull back", "partita: a gradient by hand"
"""The marks of the gradients that JAX is given to pull back, and of those that a derivative by hand makes."""


@contextmanager
def marking_gradients() -> Generator[None]:
    """A context in which gradients are marked: those given to `jax.grad` and `jax.vjp` to be pulled back, and those that a
    derivative by hand, a `jax.custom_vjp`, returns.

    What `jax.jit` has traced outside of it is traced again.
    """
    pullback, apply = _VJP.__call__, jax.custom_vjp.__call__

    def pulled(self: object, gradients: object, *more: object) -> object:
        return pullback(self, _marked(gradients, GIVEN), *more)

    # Any: JAX's class has no types.
    def applied(self: Any, *args: object, **kwargs: object) -> object:
        backward = self.bwd

        def marked(*each: object) -> object:
            return _marked(backward(*each), MADE)

        self.bwd = marked
        try:
            return apply(self, *args, **kwargs)
        finally:
            self.bwd = backward

    _VJP.__call__, jax.custom_vjp.__call__ = pulled, applied
    try:
        with traced_apart("gradients"):
            yield
    finally:
        _VJP.__call__, jax.custom_vjp.__call__ = pullback, apply


def evaluated(eqn: JaxprEqn, values: Sequence[object]) -> list[Array]:
    """The results of one equation, if its variables have these values, in order; those at its literals are not read."""
    given = [var.val if isinstance(var, Literal) else value for var, value in zip(eqn.invars, values, strict=True)]
    # Any: JAX's primitives and equations have no types.
    primitive, manager = cast(Any, eqn.primitive), cast(Any, eqn).ctx.manager
    with manager:
        found = primitive.bind(*given, **primitive.get_bind_params(eqn.params))
    return found if primitive.multiple_results else [found]


def on_its_line(info: SourceInfo) -> AbstractContextManager[object]:
    """A context in which equations come from the line, and the scopes, of another one."""
    return source_info_util.user_context(info.traceback, name_stack=info.name_stack)


def gradient_mark(eqn: JaxprEqn) -> str:
    """The mark of a gradient that an equation is; empty for another one."""
    name = eqn.params["name"] if eqn.primitive.name == "name" else ""
    return name if name in (GIVEN, MADE) else ""


def _marked(gradients: object, name: str) -> object:
    def marked(leaf: object) -> object:
        return _checkpoint_name(leaf, name) if jnp.issubdtype(jax.typeof(leaf).dtype, jnp.inexact) else leaf

    return tree.tree_map(marked, gradients)


def varying_axes(aval: ShapedArray) -> frozenset[str]:
    """The axes of the enclosing `shard_map` along which values of this type differ; none if it does not check this."""
    return cast("frozenset[str]", cast(Any, aval).mat.varying)


CALLS = frozenset(
    """call closed_call composite compute_on custom_jvp_call custom_vjp_call custom_vmap_call fused_call partitioned
    xla_metadata_call""".split()
)
"""The primitives that only call a program, besides `jit` and `remat2`."""


OPENED = CALLS | {"jit", "remat2"}
"""The primitives that only call a program."""


def closed(program: Jaxpr | ClosedJaxpr) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())


def called_program(eqn: JaxprEqn) -> Jaxpr | ClosedJaxpr:
    """Returns the program that a call equation runs. The parameter's name depends on the primitive and the version of JAX."""
    return next(eqn.params[name] for name in ("jaxpr", "call_jaxpr", "call") if name in eqn.params)


def platform() -> str:
    """The platform that the function being traced will run on: that of its mesh, or the default one if that has no devices."""
    device = jax.sharding.get_abstract_mesh().abstract_device
    return jax.default_backend() if device is None else device.platform


_BatchTracer: Any = import_module("jax._src.interpreters.batching").BatchTracer
_DynamicJaxprTracer: Any = import_module("jax._src.interpreters.partial_eval").DynamicJaxprTracer
_checkpoint_name: Any = import_module("jax.ad_checkpoint").checkpoint_name
_VJP: Any = import_module("jax._src.api").VJP
_mesh_axes_groups: Any = getattr(import_module("jax._src.config"), "use_rgv3", None)

_LOWERED_BY_TRACING = lower_fun(lambda: ()).__qualname__


def _listed(function: Callable[..., object], several: bool) -> Callable[..., list[Array]]:
    def alone(*args: Array, **params: object) -> list[object]:
        return [function(*args, **params)]

    return cast("Callable[..., list[Array]]", function if several else alone)
