"""JAX as the tracer sees it: untyped.

JAX annotates little of what a tracer needs, and part of that is in private modules. Both facts stop here: everything below
is `Any`, and every private name of JAX's that Partita uses is in this list, to be looked at when JAX changes.
"""

from __future__ import annotations

from importlib import import_module
from inspect import getclosurevars
from typing import Any, TypeAlias

PyTreeDef: TypeAlias = Any

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
lax: Any = import_module("jax.lax")
tree: Any = import_module("jax.tree_util")
ad: Any = import_module("jax.interpreters.ad")
batching: Any = import_module("jax.interpreters.batching")
mlir: Any = import_module("jax.interpreters.mlir")

Tracer: Any = import_module("jax.core").Tracer
eval_context: Any = import_module("jax._src.core").eval_context
backends: Any = import_module("jax.extend.backend").backends
jaxprs_in_params: Any = import_module("jax.extend.core").jaxprs_in_params
shaped_abstractify: Any = import_module("jax._src.core").shaped_abstractify
core_primitive: Any = import_module("jax._src.core").Primitive
apply_primitive: Any = import_module("jax._src.dispatch").apply_primitive
ordered_effects: Any = import_module("jax._src.effects").ordered_effects
lowerings: Any = import_module("jax._src.interpreters.mlir")._lowerings
lower_fun: Any = import_module("jax._src.interpreters.mlir").lower_fun
platform_lowerings: Any = import_module("jax._src.interpreters.mlir")._platform_specific_lowerings
discharge_state: Any = import_module("jax._src.state.discharge").discharge_state
dce_jaxpr: Any = import_module("jax._src.interpreters.partial_eval").dce_jaxpr
internal_mutable_array_effect: Any = import_module("jax._src.core").internal_mutable_array_effect
GatherScatterMode: Any = import_module("jax._src.lax.slicing").GatherScatterMode
fancy_batchers: Any = import_module("jax._src.interpreters.batching").fancy_primitive_batchers
linearize_jaxpr: Any = import_module("jax._src.interpreters.ad").linearize_jaxpr
prng: Any = import_module("jax._src.random.prng")
source_info_util: Any = import_module("jax._src.source_info_util")
Ref: Any = import_module("jax").Ref
RefEffect: Any = import_module("jax._src.state.types").RefEffect
ReadEffect: Any = import_module("jax._src.state.types").ReadEffect


def pallas() -> Any:
    """The module of kernels, which a program that has one has imported."""
    return import_module("jax.experimental.pallas")


def python_lowering(primitive: Any) -> Any:
    """The function by which JAX lowers a primitive, returning a list of results; None if it emits operations itself.

    JAX keeps only the rule that `lower_fun` makes of such a function, so its variables are asked.
    """
    rule = getattr(lowerings.get(primitive), "rule", None)
    if rule is None or getattr(rule, "__qualname__", "") != _LOWERED_BY_TRACING:
        return None
    made_of = getclosurevars(rule).nonlocals
    return _listed(made_of["fun"], made_of["multiple_results"])


def python_evaluation(primitive: Any) -> Any:
    """The function by which JAX evaluates a primitive, returning a list of results; None if it compiles it, or cannot."""
    rule = getattr(primitive, "impl", None)
    compiled = getattr(rule, "func", None) is apply_primitive
    missing = rule is None or getattr(rule, "__func__", None) is core_primitive.impl
    return None if compiled or missing else _listed(rule, primitive.multiple_results)


_LOWERED_BY_TRACING = lower_fun(lambda: ()).__qualname__


def _listed(function: Any, several: bool) -> Any:
    def alone(*args: Any, **params: Any) -> list[Any]:
        return [function(*args, **params)]

    return function if several else alone
