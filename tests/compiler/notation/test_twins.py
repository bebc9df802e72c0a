"""A program in index notation and the same program in JAX give the same IR."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax import lax
from twins import TWINS, Twin

import partita as pt
from partita.compiler.notation import scalar_functions
from partita.compiler.trace.trace import Traced


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_program_and_its_twin_in_jax_are_one_program(twin: Twin):
    notation = twin.read
    function = notation.functions[list(notation.functions)[-1]]
    structs = notation.arguments().values()
    assert str(pt.trace(function, *structs).module) == str(pt.trace(twin.function, *structs).module)


PARAMETERS = {"integer_pow": {"y": 3}, "reduce_precision": {"exponent_bits": 5, "mantissa_bits": 10}}
DTYPES = {"f32": "float32", "i32": "int32", "bool": "bool", "c64": "complex64"}


@pytest.mark.parametrize("name", [name for name in scalar_functions.functions() if hasattr(lax, name) or hasattr(jax.nn, name)])
def test_a_function_of_the_notation_is_that_of_jax(name: str):
    given, theirs = PARAMETERS.get(name, {}), getattr(lax, name, None) or getattr(jax.nn, name)
    operands = [f"x{number}" for number, _ in enumerate(scalar_functions.functions()[name])]
    call = ", ".join([*(f"{each}[i]" for each in operands), *(f"{key}={value}" for key, value in given.items())])

    def twin(*args: Any) -> Any:
        return theirs(*args, **given)

    dtype, wanted = taken(twin, len(operands))
    result = str(wanted.main.body.block.last_op.operands[0].type)  # pyright: ignore
    heads = ", ".join(f"{each}: {dtype}[4]" for each in operands)
    text = f"fn f({heads}) -> {result.removeprefix('!array.array<').removesuffix('>')} {{ y[i] = {name}({call}) return y }}"
    read = pt.parse(text)
    assert lines(pt.trace(read.functions["f"], *read.arguments().values())) == lines(wanted)


def taken(function: Callable[..., Any], operands: int) -> tuple[str, Traced]:
    """The first dtype that the JAX function accepts, and its trace for it."""
    for short, dtype in DTYPES.items():
        try:
            return short, pt.trace(function, *[jax.ShapeDtypeStruct((4,), dtype)] * operands)
        except (TypeError, ValueError):
            continue
    raise AssertionError("JAX's function takes none of these dtypes")


def lines(traced: Traced) -> list[str]:
    """The operations as text; the arguments have other names on both sides."""
    return str(traced.module).splitlines()[2:]
