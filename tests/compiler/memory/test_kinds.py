"""What becomes of an op's operands and results is read off its definition."""

import pytest

from partita.compiler.memory.kinds import Kind, traits
from partita.dialects.definitions.registry import definitions

KINDS = {
    Kind.SAME: "reshape squeeze expand_dims tag copy optimization_barrier",
    Kind.CONSTANT: "constant iota",
    Kind.MAP: "add tanh select_n transpose broadcast_in_dim concatenate slice pad rev gather dynamic_slice",
    Kind.FOLD: "reduce_sum reduce_max argmax",
    Kind.UPDATE: "scatter_add scatter dynamic_update_slice update_slice",
    Kind.CALL: "dot_general conv_general_dilated sort cumsum reduce_window_max top_k fft whole cholesky grouped_dot",
}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for kind, names in KINDS.items() for name in names.split()])
def test_the_kind_of_an_op(name: str, kind: Kind) -> None:
    assert traits(definitions[name]).kind is kind


def test_what_is_costly_or_looked_up_is_not_computed_twice() -> None:
    assert [name for name in ("add", "tanh", "gather", "dynamic_slice", "exp") if traits(definitions[name]).costly] == [
        "tanh",
        "gather",
        "exp",
    ]


def test_an_elementwise_op_reads_at_the_index_of_its_result() -> None:
    assert [
        name for name in ("add", "select_n", "transpose", "concatenate", "slice") if traits(definitions[name]).elementwise
    ] == [
        "add",
        "select_n",
    ]
    assert traits(definitions["broadcast_in_dim"]).broadcasts
    assert not traits(definitions["transpose"]).broadcasts
