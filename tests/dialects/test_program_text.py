"""The text of the IR is complete: parsing printed text gives the same program, and the same text again."""

import math
from io import StringIO

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from partita.dialects import context
from partita.dialects.array import RedistributeOp, mesh_of, set_mesh
from partita.dialects.definitions.registry import definitions
from partita.dialects.flow import GraphOp, KernelOp, ReturnOp as GraphReturnOp
from partita.dialects.lax import OPS, LaxOp
from partita.dialects.layouts import parse_array
from partita.dialects.mesh import Mesh
from partita.dialects.op_text import array_types
from partita.dialects.params import NO_PARAMS, Literal, ParamsAttr, Record, parse_params
from partita.dialects.program_text import read_module
from partita.dialects.regions import BORDERS
from partita.dialects.spmd import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    PairsAttr,
    PermuteOp,
    PickOp,
    ReduceScatterOp,
    RowsAttr,
    SliceOp,
)
from partita.dialects.types import ArrayType

CONTEXT = context()
MESH = Mesh(data=4, model=2)
DATA, MODEL = MESH.places


def parse(text: str) -> ModuleOp:
    return read_module(CONTEXT, text)


def generic(module: ModuleOp) -> str:
    out = StringIO()
    Printer(out, print_generic_format=True).print_op(module)
    return out.getvalue()


def array(text: str) -> ArrayType:
    return ArrayType.of(*parse_array(text, MESH))


# --- parameters ---


def test_parameters_print_as_keywords_sorted_by_name():
    params = ParamsAttr.of(
        new_dtype=Record("dtype", (("name", "bfloat16"),)), axes=(0,), mode=None, window=((1, -2), ()), value=-math.inf
    )
    assert params.text == (
        '{axes = (0,), mode = None, new_dtype = dtype(name="bfloat16"), value = -inf, window = ((1, -2), ())}'
    )
    assert parse_params(params.text) == params


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).map(lambda name: name + "_")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8"))


def inside(literals: st.SearchStrategy[Literal]) -> st.SearchStrategy[Literal]:
    tuples = st.lists(literals, max_size=3).map(tuple)
    fields = st.dictionaries(NAMES, literals, max_size=3).map(lambda each: tuple(each.items()))
    return tuples | st.builds(Record, NAMES, fields)


LITERALS: st.SearchStrategy[Literal] = st.recursive(SCALARS, inside, max_leaves=8)


@given(st.dictionaries(NAMES, LITERALS, max_size=4))
def test_any_parameters_come_back_exactly(values: dict[str, Literal]):
    params = ParamsAttr.of(**values)
    parser = Parser(CONTEXT, params.text + " : f32[]")
    again = ParamsAttr.read(parser)
    assert again.text == params.text
    assert again == params
    assert hash(again) == hash(params)
    assert parser.parse_optional_punctuation(":") is not None
    assert Parser(CONTEXT, str(params)).parse_attribute() == params


@pytest.mark.parametrize("one, other", [(1, 1.0), (1, True), (0.0, -0.0), (0, False), ((), None), ("1", 1)])
def test_parameters_that_print_differently_differ(one: Literal, other: Literal):
    assert ParamsAttr.of(value=one) != ParamsAttr.of(value=other)


def test_every_nan_is_the_same_parameter():
    assert ParamsAttr.of(value=math.nan) == ParamsAttr.of(value=float(np.float32("nan")))


def test_parameters_are_a_mapping():
    params = ParamsAttr.of(axes=(0,), dtype=Record("dtype", (("name", "float32"),)))
    record = params["dtype"]
    assert params["axes"] == (0,) and params.get("keepdims") is None and "axes" in params and len(params) == 2
    assert isinstance(record, Record) and record["name"] == "float32"


# --- types ---


TYPES = [
    "f32[]",
    "bf16[8]",
    "bool[data*4]",
    "f32[data*128, 256]{+model}",
    "i32[2*data*4, model*3]",
    "u8[t:8*16]",
    "f32[data*model*2, 7]",
    "c64[16 + 4]",
    "f32[512[0 : 256 : 1], pad(8, 1, 2)]{max data, +model}",
]


@pytest.mark.parametrize("text", TYPES)
def test_a_type_prints_as_it_is_written_and_is_one_object(text: str):
    written = f'builtin.module attributes {{array.mesh = "{MESH}", type = !array.array<{text}>}} {{}}'
    type = parse(written).attributes["type"]
    assert str(type) == f"!array.array<{text}>"
    assert type is array(text)


def test_one_device_holds_the_local_part_of_a_type():
    assert array("f32[data*128, 256]{+model}").local is array("f32[128, 256]")


def test_a_type_has_a_shape_only_where_nothing_is_placed():
    assert ArrayType.whole("float32", (3, 4)).shape == (3, 4)
    assert not array("f32[data*128]").is_whole
    assert not array("f32[128]{+data}").is_whole


# --- ops ---


def constants() -> list[tuple[Literal, str]]:
    floats = [0.1, -0.0, 1e-45, 3.4e38, -7.0, math.inf, -math.inf, math.nan]
    narrow = [float(ml_dtypes.bfloat16(value)) for value in (0.1, -3.3e38, 1e-40)]
    return [
        *((value, "float32") for value in floats),
        *((value, "bfloat16") for value in [*narrow, math.nan, math.inf]),
        *((value, "float64") for value in (0.1, 5e-324, 1.7976931348623157e308)),
        *((value, "bool") for value in (True, False)),
        *((value, "int32") for value in (0, -(2**31), 2**31 - 1)),
        *((value, "uint64") for value in (0, 2**64 - 1)),
        (Record("complex", (("real", -0.0), ("imag", math.inf))), "complex64"),
    ]


@pytest.mark.parametrize("value, dtype", constants())
def test_a_scalar_constant_comes_back_exactly(value: Literal, dtype: str):
    op = OPS["constant"].of((), [ArrayType.whole(dtype)], ParamsAttr.of(value=value))
    op.verify()
    (again,) = parse(str(op)).body.block.ops
    assert isinstance(again, LaxOp)
    assert str(again) == str(op)
    assert repr(again.params["value"]) == repr(value)


@pytest.mark.parametrize("primitive", ["whole", *sorted(set(definitions) - BORDERS)])
def test_an_op_of_every_definition_round_trips_in_both_formats(primitive: str):
    block = Block(arg_types=[array("f32[2, 3]"), array("i32[]")])
    types = [array("f32[2, 3]"), array("bf16[]")]
    block.add_op(OPS[primitive].of(block.args, types, ParamsAttr.of(axes=(0, 1), mode=None)))
    block.add_op(ReturnOp())
    module = ModuleOp([FuncOp("f", (list(block.arg_types), []), Region(block))])
    for generic in (False, True):
        out = StringIO()
        Printer(out, print_generic_format=generic).print_op(module)
        assert str(parse(out.getvalue())) == str(module)


def test_every_definition_has_an_op_except_those_at_the_border_of_a_region():
    for primitive in definitions:
        if primitive in BORDERS:
            with pytest.raises(KeyError):
                OPS[primitive]
        else:
            assert OPS[primitive] is OPS[primitive]
    assert OPS["scatter_add"].name == "lax.scatter_add"
    assert OPS["scatter_add"].primitive() == "scatter_add"


def test_collectives_infer_their_results():
    (x,) = Block(arg_types=[array("f32[64, 8]")]).args
    made = [
        AllReduceOp.make(x, [DATA], monoid="add"),
        AllGatherOp.make(x, [DATA, MODEL], dim=0, block=8),
        ReduceScatterOp.make(x, [DATA], monoid="max", dim=0, block=8),
        AllToAllOp.make(x, [DATA], split=0, split_block=4, concat=1, concat_block=8),
        PermuteOp.make(x, [MODEL], pairs=PairsAttr(((0, 1), (1, 0)))),
        SliceOp.make(x, [MODEL], dim=1, block=4),
        PickOp.make(x, [MODEL], dim=1, rows=RowsAttr(((7, 0, 0), (1, 2, 3)))),
    ]
    assert [str(op).split(" = ")[1] for op in made] == [
        "spmd.all_reduce add %1 over (data) : f32[64, 8] -> f32[64, 8]",
        "spmd.all_gather %1 dim 0 block 8 over (data, model) : f32[64, 8] -> f32[512, 8]",
        "spmd.reduce_scatter max %1 dim 0 block 8 over (data) : f32[64, 8] -> f32[16, 8]",
        "spmd.all_to_all %1 split 0 block 4 concat 1 block 8 over (data) : f32[64, 8] -> f32[16, 32]",
        "spmd.permute %1 over (model) pairs [(0, 1), (1, 0)] : f32[64, 8] -> f32[64, 8]",
        "spmd.slice %1 dim 1 block 4 over (model) : f32[64, 8] -> f32[64, 4]",
        "spmd.pick %1 dim 1 over (model) rows [(7, 0, 0), (1, 2, 3)] : f32[64, 8] -> f32[64, 3]",
    ]
    with pytest.raises(VerifyException, match="which 8 devices with blocks of 16 do not divide"):
        SliceOp.make(x, [DATA, MODEL], dim=0, block=16)


def test_the_mesh_is_read_from_the_innermost_module():
    inner, outer = ModuleOp([]), ModuleOp([])
    outer.body.block.add_op(inner)
    set_mesh(outer, MESH)
    assert mesh_of(inner) is MESH
    set_mesh(inner, Mesh(data=2))
    assert mesh_of(inner) is Mesh(data=2)


def test_modules_on_two_device_sets_name_the_axes_of_both():
    moves = [
        f"""  builtin.module attributes {{array.mesh = "data@{name}={n}"}} {{
    func.func @move(%0: !array.array<f32[data@{name}*{8 // n}]>) -> !array.array<f32[8]> {{
      %1 = array.redistribute %0 : f32[data@{name}*{8 // n}] -> f32[8]
      func.return %1 : !array.array<f32[8]>
    }}
  }}"""
        for name, n in (("left", 4), ("right", 2))
    ]
    text = "builtin.module {\n" + "\n".join(moves) + "\n}"
    module = parse(text)
    module.verify()
    assert str(module) == str(parse(generic(module))) == text
    found = [op for op in module.walk() if isinstance(op, RedistributeOp)]
    assert [mesh_of(op) for op in found] == [Mesh(data=4).on("left"), Mesh(data=2).on("right")]
    assert [array_types(op.operands)[0].layout.local_shape for op in found] == [(2,), (4,)]


def test_a_comment_or_a_string_that_mentions_a_mesh_declares_none():
    for text in ('// array.mesh = "data=4"\n', 'builtin.module attributes {a = "array.mesh = "} {} // "data=4"\n'):
        with pytest.raises(ParseError, match="`data` is an axis of no mesh"):
            parse(text + "func.func @f(%0: !array.array<f32[data*2]>) { func.return }")


class Counted(StringIO):
    """Counts what is written."""

    written = 0

    def write(self, text: str) -> int:
        self.written += 1
        return super().write(text)


def chain(length: int) -> ModuleOp:
    """A graph of `length` redistributions and kernels, each of them its own function."""
    placed, whole = array("f32[data*64, 8]"), array("f32[256, 8]")
    functions: list[FuncOp] = []
    block = Block(arg_types=[placed])
    value = block.args[0]
    for number in range(length):
        body = Block(arg_types=[array("f32[64, 8]")])
        local = OPS["tanh"].of(body.args, [array("f32[64, 8]")], NO_PARAMS)
        body.add_ops([local, ReturnOp(*local.results)])
        types = [array("f32[64, 8]")]
        functions.append(FuncOp(f"kernel_{number}", (types, types), Region(body)))
        kernel = KernelOp(f"kernel_{number}", [value], [placed])
        gather = RedistributeOp([kernel.outs[0]], [whole])
        block.add_ops([kernel, gather])
        value = kernel.outs[0]
    block.add_op(GraphReturnOp([value]))
    module = ModuleOp([*functions, GraphOp("step", Region(block), [placed])])
    set_mesh(module, MESH)
    return module


def test_the_cost_of_a_text_grows_with_its_length():
    def writes(length: int) -> int:
        out = Counted()
        Printer(out).print_op(chain(length))
        return out.written

    assert writes(200) - writes(100) == writes(100) - writes(0)


def test_a_long_program_verifies_and_comes_back():
    module = chain(200)
    module.verify()
    assert str(parse(str(module))) == str(module)
