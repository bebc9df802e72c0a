"""Expands primitives that JAX itself writes with other primitives: sparse arrays, random samplers, rarer random generators.

JAX lowers such a primitive by tracing a Python function, or evaluates it by calling one. Traced here, that function is the
program that the primitive stands for, and each of its equations can be placed.

    bcoo_todense %data, %indices {spinfo = ...}  -->  %0 = broadcast_in_dim 0;  %1 = scatter_add %0, %indices, %data
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive

from ..jax_private import jax, jaxprs_in_params, python_evaluation, python_lowering
from .prng_keys import implementation, is_key, physical, unwrap, wrap

PythonRule = Callable[..., Any]


@lru_cache(maxsize=1 << 10)
def python_rule(primitive: Primitive) -> PythonRule | None:
    """The Python function by which JAX lowers or else evaluates the primitive, made to return a list; None without one."""
    return python_lowering(primitive) or python_evaluation(primitive)


def unfold(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """Expands an equation to a program on physical arrays; None if JAX does not write its primitive with others."""
    function = None if eqn.effects else python_rule(eqn.primitive)
    if function is None:
        return None
    keys = [implementation(atom.aval) if is_key(atom.aval) else None for atom in eqn.invars]

    def physically(*arrays: Array) -> list[Array]:
        results = function(*(wrap(array, key) for array, key in zip(arrays, keys, strict=True)), **eqn.params)
        return [unwrap(result) for result in results]

    try:
        found = jax.make_jaxpr(physically)(*(physical(atom.aval) for atom in eqn.invars))
    # An evaluation rule that wants concrete arrays, another platform or a mesh fails in its own way.
    except Exception:
        return None
    # A rule that only compiles a primitive does not expand it: the program has the equation itself.
    alike = (each for each in equations(found.jaxpr) if each.primitive is eqn.primitive)
    avals = [atom.aval for atom in eqn.invars]
    return None if found.effects or any([atom.aval for atom in each.invars] == avals for each in alike) else found


def equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """Yields the equations of a program, and of the bodies in their parameters."""
    for eqn in jaxpr.eqns:
        yield eqn
        for body in jaxprs_in_params(eqn.params):
            yield from equations(body)
