"""Calls that define themselves: each has its own definition, derived from its parameters.

A primitive such as `pallas_call` computes something different in every call, so no line of `definitions.def` can describe
it. But the call says how its arrays are read and written in blocks, and that is a definition: `@` is the call on blocks. The
text of the definition is derived for each kind of call, and calls with the same text are one op. A call that says too little
runs unpartitioned, or is replaced by the program inside it.

    pallas_call[grid=(4,), ...] x   -->   lax.pallas_call %x,   y0[(i b16), d1:] = @(x0[(i b16), d0:])   size b16 = 16
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn, cast

from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, JaxprEqn

from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Definition
from ...dialects.definitions.tilings import bind
from ...dialects.ground.errors import Error
from ...dialects.params import NO_PARAMS
from ...dialects.reference.user_functions import FUNCTIONS
from ..inputs.string_literals import Written
from ..ops.bind import CALLS, RunCall
from ..ops.primitives import name_of
from . import pallas_kernels, sharding_rules
from .candidate import DefinitionCandidate
from .samples import array_types
from .user_op import definition_of_text
from .verify import accept


@dataclass(frozen=True, slots=True)
class Derivation:
    """How calls of one primitive are partitioned.

    `text` returns the definition of a call, or raises Error with the reason why there is none; `block` runs a call on blocks of
    its operands. `tried` is set for a text that must be tried first. `inside` is the parameter with the program that a call
    stands for.
    """

    text: Callable[[JaxprEqn], str]
    block: RunCall
    tried: bool = False
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The result for a call: an op, a program to replace it, or, with a reason, a primitive that runs unpartitioned."""

    op: str = ""
    why: str = ""
    inside: ClosedJaxpr | None = None


DERIVED: Mapping[str, Derivation] = {
    "custom_partitioning": Derivation(sharding_rules.text, sharding_rules.block, tried=True, inside="call"),
    "pallas_call": Derivation(pallas_kernels.text, pallas_kernels.block),
}
"""The primitives whose calls define themselves, by name."""

_OPS: dict[str, Definition] = {}
"""Text -> its definition. Programs refer to ops by name, so none is ever removed."""


def derive(eqn: JaxprEqn) -> Found:
    """Returns the op, the program or the reason for a call of one of these primitives."""
    derivation = DERIVED[name_of(eqn.primitive)]
    try:
        return Found(_op(derivation, derivation.text(eqn), eqn))
    except Error as error:
        return Found(inside=eqn.params[derivation.inside]) if derivation.inside else Found(why=error.title)


def _op(derivation: Derivation, text: str, eqn: JaxprEqn) -> str:
    """The name of the op that a text defines. Raises Error if the call does not fit it."""
    known, written = _OPS.get(text), Written(text)
    definition = known or definition_of_text(written)
    ins, outs = (cast("list[ShapedArray]", [atom.aval for atom in atoms]) for atoms in (eqn.invars, eqn.outvars))
    bind(definition, NO_PARAMS, array_types(ins), array_types(outs))
    if known is None:
        definition = _OPS[text] = definitions.add(definition)
        FUNCTIONS[definition.name] = _foreign
        CALLS[definition.name] = derivation.block
    if derivation.tried:
        accept(DefinitionCandidate(definition, written, derivation.block), eqn.params, ins, outs)
    return definition.name


def _foreign(*_: object) -> NoReturn:
    raise Error("the interpreter cannot run a kernel or a JAX function, because the IR does not contain it")
