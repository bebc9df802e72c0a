"""Runs the named ops with JAX, on whole arrays or on one device's part of each.

Local and global arrays have the same parameters, because extents follow from the types.

    bind_local("reshape", {}, [f32[64, 8]], [("float32", (512,))])  -->  reshape_p.bind(x, new_sizes=(512,), ...)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from jax import Array
from jax.extend.core import jaxpr_as_fun
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.definitions.registry import definitions
from ...dialects.ground.errors import Error
from ...dialects.lax import params_of
from ...dialects.params import Literal, ParamsAttr, Record
from ...dialects.regions import entries_of
from ...dialects.types import ArrayType
from ..jax_private import jax, jnp, lax, platform
from . import prefetch
from .barrier import barrier_p
from .index_operands import clamped, scattered, widened
from .params import PARAMS_OF_WHOLE, ArrayLike, decode, from_literal
from .primitives import find_primitive
from .prng_keys import unwrap, wrap
from .shard_map import run_mapped

Body = Callable[..., list[Array]]
"""A region as a function: from the arguments of its block to the values that it yields."""
RunOp = Callable[[Operation, Sequence[Array], Sequence[object]], list[Array]]
"""Runs one op on its operands. The last argument holds the program's parameters that have no text."""
RunCall = Callable[[Mapping[str, Any], Sequence[Array], Sequence[ArrayLike]], list[Array]]
"""Runs a call on blocks of its operands: (JAX parameters of the whole call, operands, types of the results) -> results."""

CALLS: dict[str, RunCall] = {}
"""How to run ops whose parameters contain extents that a definition cannot drop, by name. Their definers add them."""


def bind_local(
    name: str,
    params: ParamsAttr,
    inputs: Sequence[Array],
    out_types: Sequence[ArrayLike],
    *,
    bodies: Sequence[Body] = (),
    foreign: Sequence[object] = (),
    alone: bool = False,
) -> list[Array]:
    """The results of the op `lax.NAME` on these arrays, computed by its JAX primitive.

    Extents follow from the arrays and `out_types`, so the same parameters serve global and local arrays. An op
    with regions needs its `bodies`, and `foreign` is the program's list of parameters without text. `alone` binds one
    primitive, for a trace to read back; otherwise positions are first made safe for what XLA does with them.
    """
    if name == "constant":
        return [cast(Array, constant(params["value"], out_types[0][0]))]
    if name in _REGIONS:
        return _REGIONS[name](params, inputs, bodies)
    if name == "whole" and "own_axes" in params:
        return run_mapped(params, inputs, foreign, run_block, run_op)
    if name == "whole":
        return _run_undefined(params, inputs, foreign)
    decoded = decode(name, params, tuple(map(np.shape, inputs)), tuple(out_types), foreign)
    if run_call := CALLS.get(name):
        return run_call(decoded, inputs, out_types)
    definition = definitions[name].with_arity(len(inputs), len(out_types))
    if definition.starts and not alone:
        inputs = clamped(name, widened(definition.starts, inputs), out_types[0][1], decoded)
    if "update_jaxpr" in definition.dropped:
        # The public function of a scatter writes the combiner, which depends on the dtype.
        return [(getattr(lax, name) if alone else partial(scattered, name))(*inputs, **decoded)]
    if name == "slice":
        # An empty one ends where it starts, whatever its stride.
        starts, limits = (cast("tuple[int, ...]", decoded[key]) for key in ("start_indices", "limit_indices"))
        decoded["limit_indices"] = tuple(map(max, starts, limits))
    if name == "optimization_barrier" and not alone:
        return barrier_p.bind(*inputs)
    return _bind(name, inputs, decoded)


def constant(value: Literal, dtype: str) -> np.ndarray:
    """The array of a `lax.constant`, of rank 0. Raises Error for an integer that does not fit the dtype."""
    number = complex(cast(float, value["real"]), cast(float, value["imag"])) if isinstance(value, Record) else value
    try:
        return np.asarray(number, dtype=jnp.dtype(dtype))
    except OverflowError:
        helps = ["the positions along a dim of 2**31 elements or more need 64 bits: JAX_ENABLE_X64=1, and indices of int64"]
        raise Error(f"the position {number} does not fit {dtype}", helps=helps) from None


def _bind(name: str, inputs: Sequence[Array], params: Mapping[str, object]) -> list[Array]:
    primitive = find_primitive(name)
    results = cast(Any, primitive).bind(*inputs, **params)
    return list(results) if primitive.multiple_results else [results]


def _run_undefined(params: ParamsAttr, inputs: Sequence[Array], foreign: Sequence[object]) -> list[Array]:
    """Runs a primitive that has no definition. It gets keys as arrays of keys."""
    in_keys = cast("tuple[str | None, ...]", params.get("in_keys") or (None,) * len(inputs))
    keyed = [wrap(each, impl) for each, impl in zip(inputs, in_keys, strict=True)]
    own = {key: from_literal(each, foreign) for key, each in params.items() if key not in PARAMS_OF_WHOLE}
    return [unwrap(each) for each in _bind(cast(str, params["primitive"]), keyed, own)]


def _scan(params: ParamsAttr, inputs: Sequence[Array], bodies: Sequence[Body]) -> list[Array]:
    (body,) = bodies
    entry = entries_of("lax.scan", params, 1)
    how = {key: params[key] for key in ("length", "reverse", "unroll")}
    if isinstance(body, _Prefetching) and how["length"] != 1:
        return prefetch.scan(body.skewed, entry, inputs, params)
    first, rows = list(inputs[entry.carries]), list(inputs[entry.rows])

    def trip(carry: list[Array], row: list[Array]) -> tuple[list[Array], list[Array]]:
        results = body(*entry.arguments(0, inputs, carry, row))
        return results[: len(first)], results[len(first) :]

    carry, ys = lax.scan(trip, first, rows, **how)
    return [*carry, *ys]


def _while(params: ParamsAttr, inputs: Sequence[Array], bodies: Sequence[Body]) -> list[Array]:
    test, body = bodies
    entry = entries_of("lax.while", params, 2)

    def goes_on(carry: list[Array]) -> Array:
        return test(*entry.arguments(0, inputs, carry))[0]

    def trip(carry: list[Array]) -> list[Array]:
        return body(*entry.arguments(1, inputs, carry))

    return lax.while_loop(goes_on, trip, list(inputs[entry.carries]))


def _cond(params: ParamsAttr, inputs: Sequence[Array], bodies: Sequence[Body]) -> list[Array]:
    return lax.switch(inputs[0], bodies, *entries_of("lax.cond", params, len(bodies)).arguments(0, inputs, ()))


_REGIONS: Mapping[str, Callable[[ParamsAttr, Sequence[Array], Sequence[Body]], list[Array]]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}


def run_block(block: Block, inputs: Sequence[Array], foreign: Sequence[object] = (), run: RunOp | None = None) -> list[Array]:
    """Runs a block on these values of its arguments, and returns its terminator's operands. `run` runs each op without regions.

    Regions are traced before the ops that have them, innermost first, so deep nests do not use Python's stack.
    """
    bodies: dict[Block, Body] = {}
    blocks = [block]
    for each in blocks:
        blocks += [region.block for op in each.ops for region in op.regions]
    for inner in blocks[:0:-1]:
        bodies[inner] = _body(inner, foreign, run or run_op, dict(bodies))
    return _run_ops(block, inputs, foreign, run or run_op, bodies)


def _body(block: Block, foreign: Sequence[object], run: RunOp, bodies: Mapping[Block, Body]) -> Body:
    """A region as a function. XLA:CPU runs one op after another, so that no trip gathers for the next one there."""
    traced = partial(_traced, partial(_run_ops, block, foreign=foreign, run=run, bodies=bodies), block)
    if platform() == "cpu" or not prefetch.is_skewed(block):
        return traced()
    return _Prefetching(traced, prefetch.Skewed(block, partial(_run_inner, foreign=foreign, run=run, bodies=bodies)))


@dataclass(frozen=True, slots=True)
class _Prefetching:
    """The body of a scan whose trips gather for the next ones; called, a trip makes its own."""

    traced: Callable[[], Body]
    skewed: prefetch.Skewed

    def __call__(self, *given: Array) -> list[Array]:
        return self.traced()(*given)


def _traced(run: Callable[[Sequence[Array]], list[Array]], block: Block) -> Body:
    """Traces a function of a block's arguments, once, and returns the traced program as a function."""

    def body(*given: Array) -> list[Array]:
        return run(given)

    types = cast("Sequence[ArrayType]", block.arg_types)
    closed = jax.make_jaxpr(body)(*(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in types))
    return cast(Body, jaxpr_as_fun(closed))


def _run_ops(
    block: Block, inputs: Sequence[Array], foreign: Sequence[object], run: RunOp, bodies: Mapping[Block, Body]
) -> list[Array]:
    env: dict[SSAValue, Array] = dict(zip(block.args, inputs, strict=True))
    for op in block.ops:
        operands = [env[value] for value in op.operands]
        if op.next_op is None:
            return operands
        env.update(zip(op.results, _run_inner(op, operands, foreign, run, bodies), strict=True))
    raise AssertionError("a block ends in a terminator")


def _run_inner(
    op: Operation, operands: Sequence[Array], foreign: Sequence[object], run: RunOp, bodies: Mapping[Block, Body]
) -> list[Array]:
    """Runs an op of a block: its regions are functions by now."""
    own = [bodies[region.block] for region in op.regions]
    return run_op(op, operands, foreign, own) if own else run(op, operands, foreign)


def run_op(op: Operation, operands: Sequence[Array], foreign: Sequence[object], bodies: Sequence[Body] = ()) -> list[Array]:
    """Runs one named op, and returns its results. An op with regions needs the functions that run them."""
    params = params_of(op)
    types = [(array.dtype, array.shape) for array in cast("Sequence[ArrayType]", op.result_types)]
    return bind_local(op.name.removeprefix("lax."), params, operands, types, bodies=bodies, foreign=foreign)
