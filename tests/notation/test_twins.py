"""A program in index notation and the same program in JAX give the same IR."""

import pytest
from twins import TWINS, Twin

import partita as pt


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_program_and_its_twin_in_jax_are_one_program(twin: Twin):
    notation = pt.parse(twin.text)
    function = notation.functions[list(notation.functions)[-1]]
    structs = notation.arguments().values()
    assert str(pt.trace(function, *structs).module) == str(pt.trace(twin.function, *structs).module)
