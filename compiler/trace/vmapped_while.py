"""Rewrites a `while` that `vmap` has made: it has a predicate for each element of the batch, where `lax.while` has one.

The loop continues while the predicate holds for any element; the elements that are done keep their values.

    while c[b]: x = f(x)   -->   while any(c[b]): x = select(c[b], f(x), x)
"""

from typing import Any, cast

from jax import Array
from jax.extend.core import JaxprEqn, jaxpr_as_fun

from ..jax_private import jax, lax


def with_one_predicate(eqn: JaxprEqn) -> JaxprEqn:
    """Returns the loop with one predicate for all elements. Its body evaluates the condition too, whose consts come first."""
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    asked, fixed = cast(int, eqn.params["cond_nconsts"]), cast(int, eqn.params["body_nconsts"])
    if not test.out_avals[0].shape:
        return eqn
    verdict, trip = cast(Any, jaxpr_as_fun(test)), cast(Any, jaxpr_as_fun(body))

    def goes_on(*args: Array) -> Array:
        (each,) = verdict(*args)
        return lax.reduce_or(each, tuple(range(each.ndim)))

    def kept(*args: Array) -> list[Array]:
        first, second, carry = args[:asked], args[asked : asked + fixed], args[asked + fixed :]
        (each,) = verdict(*first, *carry)
        # The batch dims come first.
        spread = (lax.broadcast_in_dim(each, old.shape, tuple(range(each.ndim))) for old in carry)
        return [*map(lax.select, spread, trip(*second, *carry), carry)]

    single = {
        "cond_jaxpr": jax.make_jaxpr(goes_on)(*test.in_avals),
        "body_jaxpr": jax.make_jaxpr(kept)(*test.in_avals[:asked], *body.in_avals),
        "body_nconsts": asked + fixed,
    }
    return cast(Any, eqn).replace(invars=[*eqn.invars[:asked], *eqn.invars], params={**eqn.params, **single})
