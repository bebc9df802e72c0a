"""Jaxprs: the operations from which derivatives and batches are built.

y, r0, r1, r1 = forward x   -->   y, r1 = forward x, and r0, a constant, in the tangent
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, jaxpr_as_fun
from jax.sharding import PartitionSpec

from ..jax_private import jax, jnp
from ..ops.prng_keys import physical, unwrap
from ..trace.trace import as_aval

Flags = tuple[bool, ...]
"""A flag for each argument, or for each result."""


def function(closed: ClosedJaxpr) -> Callable[..., list[Array]]:
    return cast("Callable[..., list[Array]]", jaxpr_as_fun(closed))


def avals(closed: ClosedJaxpr) -> tuple[list[ShapedArray], list[ShapedArray]]:
    return list(closed.in_avals), list(closed.out_avals)


def is_smooth(aval: ShapedArray) -> bool:
    """Whether a value has a tangent. Integers have none."""
    return bool(jnp.issubdtype(aval.dtype, jnp.inexact))


def on_arrays(run: Callable[..., Sequence[Array]], types: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Traces a function whose keys are passed and returned as the arrays that hold them."""

    def physically(*arrays: Array) -> list[Array]:
        return [unwrap(each) for each in run(*(as_aval(array, aval) for array, aval in zip(arrays, types, strict=True)))]

    return jax.make_jaxpr(physically)(*map(physical, types))


def distinct(jaxpr: Jaxpr, count: int) -> tuple[list[int], list[int | None]]:
    """Returns the results to keep: the first `count`, and of the others each different one that is computed.

    Also returns, for each of the others, where it is among those kept; None for a constant.
    """
    dependent = _dependent(jaxpr)
    at: dict[int, int | None] = {id(each): number for number, each in reversed(list(enumerate(jaxpr.outvars[:count])))}
    kept = list(range(count))
    for number, each in enumerate(jaxpr.outvars[count:], count):
        if id(each) not in at:
            computed = type(each) is not Literal and each in dependent
            at[id(each)] = len(kept) if computed else None
            kept += [number] if computed else []
    return kept, [at[id(each)] for each in jaxpr.outvars[count:]]


def _dependent(jaxpr: Jaxpr) -> set[Var]:
    """The variables that are computed from an argument, or by an equation with an effect."""
    found: set[Var] = set(jaxpr.invars)
    for eqn in jaxpr.eqns:
        if eqn.effects or any(type(atom) is not Literal and atom in found for atom in eqn.invars):
            found.update(eqn.outvars)
    return found


def constants(closed: ClosedJaxpr, numbers: Sequence[int]) -> ClosedJaxpr:
    """The program of these results alone. They do not depend on an argument, so it takes none."""
    jaxpr, dependent = closed.jaxpr, _dependent(closed.jaxpr)
    eqns = [eqn for eqn in jaxpr.eqns if not eqn.effects and dependent.isdisjoint(eqn.outvars)]
    outvars = [jaxpr.outvars[number] for number in numbers]
    debug = jaxpr.debug_info.with_unknown_names()
    alone = jaxpr.replace(invars=[], outvars=outvars, eqns=eqns, effects=set(), debug_info=debug)
    return ClosedJaxpr(alone, closed.consts)


def giving(closed: ClosedJaxpr, kept: Sequence[int]) -> ClosedJaxpr:
    """The program, reduced to these results."""
    run = function(closed)

    def fewer(*arrays: Array) -> list[Array]:
        results = run(*arrays)
        return [results[number] for number in kept]

    return on_arrays(fewer, avals(closed)[0])


def making(tangent: ClosedJaxpr, made: Flags, constants: ClosedJaxpr) -> ClosedJaxpr:
    """The tangent program, which computes its constant residuals itself and takes the others as arguments."""
    run, make = function(tangent), function(constants)
    makes = [*made, *[False] * (len(avals(tangent)[0]) - len(made))]

    def pushed(*arrays: Array) -> list[Array]:
        given, own = iter(arrays), iter(make())
        return run(*(next(own) if makes else next(given) for makes in makes))

    return on_arrays(pushed, [aval for aval, own in zip(avals(tangent)[0], makes, strict=True) if not own])


def which(flags: Flags, wanted: bool = True) -> list[int]:
    return [number for number, flag in enumerate(flags) if flag is wanted]


def batch_type(aval: ShapedArray, size: int) -> ShapedArray:
    """The type with a new first dim, a batch of this size, which no axis tiles."""
    sharding: Any = aval.sharding
    spec = PartitionSpec(None, *sharding.spec)
    return cast(Any, aval).update(shape=(size, *aval.shape), sharding=sharding.update(spec=spec))
