"""Compares a plan with the original function on the same arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh as DeviceMesh, NamedSharding, PartitionSpec

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error
from ..jax_private import Tracer, jax, tree
from ..ops.prng_keys import is_void
from ..plan.state import State
from .addressable import fetched
from .compiled import Compiled
from .extended_shard_map import is_explicit

T = TypeVar("T")


Run = Callable[..., object]


def largest_difference(
    plan: State, args: Sequence[object], kwargs: Mapping[str, object], run: Callable[[], Run] | None = None
) -> float:
    """The largest |a-b|/(1e-3+|b|) between the partitioned and the original function's results.

    `run` makes what runs the plan, if that is not `Compiled`.
    """
    return max(differences(plan, args, kwargs, run).values(), default=0.0)


def differences(
    plan: State, args: Sequence[object], kwargs: Mapping[str, object], run: Callable[[], Run] | None = None
) -> dict[str, float]:
    """For each result, the largest |a-b|/(1e-3+|b|) of its elements. Raises Error if NaNs or infinities differ."""
    traced = plan.source.traced
    if any(isinstance(leaf, Tracer) for leaf in tree.tree_leaves((args, kwargs))):
        raise Error("`check` compares arrays, got a traced value", helps=["call it outside of `jax.jit` and `jax.grad`"])
    ours = _run("the plan", plan, _compiled(plan) if run is None else run(), args, kwargs)
    # Another program than the function is compared with itself, run whole.
    whole = jax.jit(traced.function.fn, static_argnames=traced.function.static)
    original = traced.as_traced if traced.changes else whole
    args, kwargs = tree.tree_map(unsharded, (tuple(args), dict(kwargs)))
    theirs = _run("the whole program" if traced.changes else "the original function", plan, original, args, kwargs)
    return {
        name: relative_difference(name, *map(fetched, pair))
        for name, *pair in zip(traced.result_names, ours, theirs, strict=True)
        if not is_void(pair[0])
    }


def _compiled(plan: State) -> Compiled:
    made = Compiled(plan)
    # All results are fetched whole.
    made.told = True
    return made


def _run(
    what: str, plan: State, call: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> list[Array]:
    """Calls a function, and returns the leaves of its result. Raises Error if XLA cannot compile or run it."""
    function = plan.source.traced.function
    try:
        return tree.tree_leaves(jax.block_until_ready(call(*args, **kwargs)))
    except jax.errors.JaxRuntimeError as error:
        alone = "plan.compile()(...)" if isinstance(call, Compiled) else f"jax.jit({function.name})(...)"
        first = next(iter(str(error).splitlines()), "")
        title = f"`check` cannot compare: {what} of `{function.name}` fails on these arrays"
        raise function.error(title, f"see the whole error by {alone}", notes=[f"XLA says: {first}"]) from error


def unsharded(leaf: T) -> T:
    """Removes mesh axes from an argument's type. JAX would need a sharding for each contraction of the original function.

    f32[512@z, 8]   -->   f32[512, 8]
    """
    if not isinstance(leaf, Array):
        return leaf
    if AxisType.Explicit in jax.sharding.get_abstract_mesh().axis_types:
        return jax.device_put(leaf, PartitionSpec())
    if not is_explicit(leaf):
        return leaf
    sharding = cast(NamedSharding, leaf.sharding)
    there = cast(DeviceMesh, sharding.mesh)
    return jax.device_put(leaf, NamedSharding(DeviceMesh(there.devices, there.axis_names), sharding.spec))


def relative_difference(name: str, a: np.ndarray, b: np.ndarray) -> float:
    """The largest |a-b|/(1e-3+|b|). Equal infinities and NaNs count as equal. Raises Error if only one side has them."""
    wide = np.complex128 if b.dtype.kind == "c" else np.float64
    left, right = a.astype(wide), b.astype(wide)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    if (apart := ~(same | (np.isfinite(left) & np.isfinite(right)))).any():
        # NaN or infinite in one run, and not the same in the other.
        first = tuple(map(int, np.argwhere(apart)[0]))
        where = f"`{name}[{', '.join(map(str, first))}]`" if first else f"`{name}`"
        count = "" if apart.size == 1 else f" in {int(apart.sum()):,} of {counted(apart.size, 'element')}"
        raise Error(
            f"`{name}` has NaNs or infinities that the two runs do not share{count}",
            notes=[f"{where} is {left[first]} in the plan's run, and {right[first]} in the original's"],
        )
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(left - right) / (1e-3 + np.abs(right)))
    return float(gap.max(initial=0.0))
