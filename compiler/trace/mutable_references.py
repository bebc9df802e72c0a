"""Replaces mutable references by values, as JAX does when it compiles: a write gives the reference's next value.

r = new_ref 0.0;  r[...] += x;  y = r[...]   -->   %r = add 0.0, x;  y = %r
"""

from collections.abc import Callable, Iterator

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from ...dialects.ground.errors import Error
from ..inputs.arguments import UserFunction
from ..inputs.lines import Origin, source_line_of
from ..jax_private import RefEffect, dce_jaxpr, discharge_state, internal_mutable_array_effect, jaxprs_in_params

_CURES = [
    "make the reference inside the function with `jax.new_ref`",
    "or take the array as an argument and return its new value",
]


def check_references(function: UserFunction, closed: ClosedJaxpr) -> None:
    """Raises Error for a reference from outside of the function, because a plan's devices have copies or parts of its array."""
    if any(map(_is_reference, closed.effects)):
        eqn = next(with_effect(closed.jaxpr, _is_reference))
        raise Error(
            f"`{function.name}` reads or writes a mutable reference that was created outside it",
            location=source_line_of(Origin(eqn.source_info)).location() or function.location(),
            label="uses a reference from outside",
            helps=_CURES,
        )


def without_references(function: UserFunction, closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces the references in a program, if it has any, by values. Raises Error if JAX cannot replace one."""
    if internal_mutable_array_effect not in closed.effects:
        return closed
    try:
        # Calls with custom derivative rules stay calls; otherwise their rules would be lost silently.
        live, _ = dce_jaxpr(closed.jaxpr, True, True)
        return discharge_state(ClosedJaxpr(live, closed.consts), lower=False)
    except NotImplementedError as error:
        title = f"`{function.name}` uses a mutable reference in a way that JAX cannot replace by values"
        help = "use arrays there: return the new value instead of writing it"
        raise function.error(title, help, notes=[str(error)]) from error


def with_effect(jaxpr: Jaxpr, wanted: Callable[[object], bool]) -> Iterator[JaxprEqn]:
    """Yields the equations with an effect that `wanted` accepts, innermost first."""
    for eqn in jaxpr.eqns:
        if any(map(wanted, eqn.effects)):
            for inner in jaxprs_in_params(eqn.params):
                yield from with_effect(inner, wanted)
            yield eqn


def _is_reference(effect: object) -> bool:
    return isinstance(effect, RefEffect)
