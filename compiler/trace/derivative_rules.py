"""Derivatives by a rule, which a program that was inlined has no more.

JAX keeps a function with a derivative of its own, such as a `jax.custom_jvp`, as one equation; a plan holds what is inside
of it. What the ops there would give is another derivative, and nobody would see it, so it is refused.

    jax.grad(pt.jit(f, ...))    -->    error: the compiled `f` has no derivative: it holds the ops of `relu`, not its rule
    pt.jit(jax.grad(f), ...)    -->    the derivative by the rule, partitioned
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

from jax.extend.core import JaxprEqn

from ...dialects.errors import Error
from ..inputs.lines import Origin, resolve
from ..jax_private import jax, jnp
from ..ops.primitives import name_of

if TYPE_CHECKING:
    from .trace import Traced

R = TypeVar("R")

MOST = 8
"""Rules that one error shows."""

KINDS = {
    "custom_jvp_call": "custom_jvp",
    "custom_vjp_call": "custom_vjp",
    "custom_vjp_call_jaxpr": "custom_vjp",
    "custom_linear_solve": "custom_linear_solve",
    "linear_call": "linear_call",
    "random_gamma": "random_gamma",
}
"""Primitives whose derivative is not that of the ops which they become here, and how their rule is called."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that was left out: the function that has it, its kind, and where it is called."""

    name: str
    kind: str
    origin: Origin

    @classmethod
    def of(cls, eqn: JaxprEqn, origin: Origin) -> Rule:
        primitive = name_of(eqn.primitive)
        inside = eqn.params.get("call_jaxpr", eqn.params.get("fun_jaxpr"))
        name = inside.jaxpr.debug_info.func_name if inside is not None and primitive.startswith("custom_") else primitive
        return cls(name, KINDS[primitive], origin)

    def __str__(self) -> str:
        return f"`{self.name}`{f' ({self.kind})' if self.kind != self.name else ''} at {resolve(self.origin)}"


def guarded(run: Callable[..., R], traced: Traced) -> Callable[..., R]:
    """The function itself, but for that it refuses to be differentiated where rules were left out."""
    if not traced.rules or not any(jnp.issubdtype(aval.dtype, jnp.inexact) for aval in traced.out_avals):
        return run

    def differentiate(primals: Sequence[object], tangents: Sequence[object]) -> NoReturn:
        raise refusal(traced)

    made = jax.custom_jvp(run)
    made.defjvp(differentiate)
    return made


def refusal(traced: Traced) -> Error:
    """Which rules the program has not, and how to have the derivative."""
    names = list(dict.fromkeys(f"`{rule.name}`" for rule in traced.rules))
    notes = list(dict.fromkeys(map(str, traced.rules)))
    more = [f"and {len(notes) - MOST} more"] if len(notes) > MOST else []
    first = traced.rules[0]
    their = "its rule" if len(names) == 1 else "their rules"
    said = ", ".join(names[:MOST])
    own = traced.name if traced.name.isidentifier() else "f"
    return Error(
        f"the compiled `{traced.name}` has no derivative: it holds the ops of {said}, not {their}",
        location=resolve(first.origin).location(),
        label=f"`{first.name}` has a derivative of its own",
        notes=[*notes[:MOST], *more],
        helps=[
            f"partition the derivative, in which rules are applied: pt.jit(jax.grad({own}), ...)",
            "or make the function with the rule an op, which keeps it: pt.define",
        ],
    )
