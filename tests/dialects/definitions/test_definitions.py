"""The tilings and parameters that follow from definitions, as a table; mistakes get a caret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase

import pytest

from partita.dialects.definitions import printer
from partita.dialects.definitions.ground_form import ELEMENT
from partita.dialects.definitions.local_params import restore
from partita.dialects.definitions.operators import ARITHMETIC
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.definitions.registry import Definitions, definitions
from partita.dialects.definitions.requirement_terms import Lookup, Merging, Scan, Selection, part
from partita.dialects.definitions.syntax_tree import Apply, Definition, Term, children
from partita.dialects.definitions.tilings import Index, Instance, SubIndex, SubIndices, bind
from partita.dialects.ground.errors import Error
from partita.dialects.params import NO_PARAMS, Literal, ParamsAttr, Record
from partita.dialects.reference import scalar_functions, whole_dims

Shapes = list[tuple[int, ...]]


def tilings(name: str, ins: Shapes, outs: Shapes, /, **params: Literal) -> str:
    """The indices of each dim as letters, `.` for a dim that cannot be placed, and what each index requires of the local op."""
    return tilings_of("float32", name, ins, outs, **params)


def tilings_of(dtype: str, name: str, ins: Shapes, outs: Shapes, /, **params: Literal) -> str:
    return written(bind(definitions[name], ParamsAttr.of(**params), [(dtype, s) for s in ins], [(dtype, s) for s in outs]))


def written(instance: Instance) -> str:
    sides = [" ".join(map(letters, side)) for side in (instance.operands, instance.results)]
    roles = [f"{ascii_lowercase[i]}:{role(index)}" for i, index in enumerate(instance.indices) if role(index)]
    return " ".join([f"{sides[0]} -> {sides[1]}".strip(), *roles, *(["moves"] if instance.moves else [])])


def letters(dims: SubIndices) -> str:
    """One array: `a(bc).`, or `-` for a scalar; `<de>` is a dim that `d` and `e` read through a window."""
    return "".join(map(letters_of, dims)) or "-"


def letters_of(dim: tuple[SubIndex, ...]) -> str:
    word = "".join(ascii_lowercase[at] for at in numbers(dim)) + "".join(str(each.minor) for each in dim[-1:] if each.minor > 1)
    if any(digit.reach for digit in dim):
        return f"<{word}>"
    return f"({word})" if len(word) > 1 else word or "."


def numbers(dim: tuple[SubIndex, ...]) -> tuple[int, ...]:
    return tuple(digit.at for digit in dim)


def role(index: Index) -> str:
    said = [index.monoid] if index.monoid else []
    said += ["value" for _, term in index.terms if term == part(("iota", index.extent))]
    said += [f"scan {each.monoid}" + " backwards" * each.backwards for each in index.parts(Scan)]
    said += [f"{each.monoid} {each.best}/{each.cost}" for each in index.parts(Selection)]
    said += [f"merge {each.keys} of {', '.join(map(str, each.sizes))}" + " ties" * each.ties for each in index.parts(Merging)]
    said += [f"lookup{k.operand}.{k.component}" + f"w{k.width}" * (k.width > 1) for k in index.parts(Lookup)]
    said += [f"mask{operand}" for operand in masked(index)]
    said += [f"once{term[1]}" for _, term in index.terms if isinstance(term, tuple) and term[0] == "add"]
    return ",".join(said)


def masked(index: Index) -> tuple[int, ...]:
    """The operands with zeros where ids leave a block; -1 is the result."""
    found: list[int] = []
    for _, term in index.terms:
        match term:
            case ("take", *_):
                found.append(-1)
            case ("slice", _, _, ("join", _, _, int(operand))):
                found.append(operand)
            case _:
                pass
    return tuple(dict.fromkeys(found))


def dims(kind: str, names: tuple[str, ...], *values: tuple[int, ...]) -> Record:
    return Record(kind, tuple(zip(names, values, strict=True)))


def gather_dims(*values: tuple[int, ...]) -> Record:
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims", "start_indices_batching_dims")
    return dims("GatherDimensionNumbers", names, *values)


def scatter_dims(*values: tuple[int, ...]) -> Record:
    names = (
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "operand_batching_dims",
        "scatter_indices_batching_dims",
    )
    return dims("ScatterDimensionNumbers", names, *values)


CLIP = Record("GatherScatterMode", (("name", "CLIP"),))
FILL = Record("GatherScatterMode", (("name", "FILL_OR_DROP"),))
ROWS = gather_dims((2,), (0,), (0,), (), ())
ALONG = gather_dims((), (2,), (2,), (0, 1), (0, 1))
INTO_ROWS = scatter_dims((2,), (0,), (0,), (), ())
IMAGES = dims("ConvDimensionNumbers", ("lhs_spec", "rhs_spec", "out_spec"), (0, 1, 2), (0, 1, 2), (0, 1, 2))
CONV: dict[str, Literal] = {
    "window_strides": (1,),
    "padding": ((1, 1),),
    "lhs_dilation": (1,),
    "rhs_dilation": (1,),
    "dimension_numbers": IMAGES,
}

# op, operand shapes, result shapes, parameters --> operands -> results, then what each index requires
TABLE: list[tuple[str, Shapes, Shapes, dict[str, Literal], str]] = [
    ("tanh", [(4, 8)], [(4, 8)], {}, "ab -> ab"),
    ("add", [(4, 8), (4, 8)], [(4, 8)], {}, "ab ab -> ab"),
    ("add", [(4, 8), ()], [(4, 8)], {}, "ab - -> ab"),
    ("add", [(1, 1, 8), (2, 4, 8)], [(2, 4, 8)], {}, "..c abc -> abc"),
    ("mul", [(), ()], [()], {}, "- - -> -"),
    ("select_n", [(), (4, 8), (4, 8)], [(4, 8)], {}, "- ab ab -> ab"),
    ("clamp", [(), (4, 8), ()], [(4, 8)], {}, "- ab - -> ab"),
    ("threefry2x32", [(), (), (8,), (8,)], [(8,), (8,)], {}, "- - a a -> a a"),
    ("convert_element_type", [(4, 8)], [(4, 8)], {}, "ab -> ab moves"),
    ("optimization_barrier", [(6, 8), (3,)], [(6, 8), (3,)], {}, "bc a -> bc a"),
    ("bitcast_convert_type", [(4, 8)], [(4, 8)], {}, "ab -> ab"),
    ("bitcast_convert_type", [(4, 8)], [(4, 8, 4)], {}, "ab -> ab."),
    ("transpose", [(4, 6, 8)], [(8, 4, 6)], {"permutation": (2, 0, 1)}, "bca -> abc moves"),
    ("broadcast_in_dim", [(6,)], [(3, 6)], {"broadcast_dimensions": (1,)}, "b -> ab"),
    ("broadcast_in_dim", [(3, 1)], [(3, 5)], {"broadcast_dimensions": (0, 1)}, "a. -> ab"),
    ("reshape", [(4, 6, 8)], [(4, 48)], {}, "abc -> a(bc) moves"),
    ("reshape", [(4, 48)], [(4, 1, 6, 8)], {}, "a(bc) -> a.bc moves"),
    ("reshape", [(6, 4)], [(2, 12)], {}, "(ab)c -> a(bc) moves"),
    ("reshape", [(4, 6, 4)], [(4, 4, 6)], {}, "a.. -> a.. moves"),
    ("squeeze", [(1, 6, 1)], [(6,)], {"dimensions": (0, 2)}, ".a. -> a moves"),
    ("iota", [], [(3, 4)], {"dimension": 1}, "-> ab b:value"),
    ("concatenate", [(6, 8), (6, 3)], [(6, 11)], {"dimension": 1}, "a<b> a<b> -> ab"),
    ("rev", [(6, 8)], [(6, 8)], {"dimensions": (1,)}, "a<b> -> ab moves"),
    ("slice", [(6, 8)], [(6, 4)], {"start_indices": (0, 1), "strides": None}, "a<b> -> ab"),
    ("pad", [(6, 8), ()], [(6, 10)], {"padding_config": ((0, 0, 0), (1, 1, 0))}, "a<b> - -> ab"),
    ("dot_general", [(4, 6), (6, 8)], [(4, 8)], {"dimension_numbers": (((1,), (0,)), ((), ()))}, "ac cb -> ab c:add"),
    (
        "dot_general",
        [(4, 6, 8), (4, 8, 3)],
        [(4, 6, 3)],
        {"dimension_numbers": (((2,), (1,)), ((0,), (0,)))},
        "abd adc -> abc d:add",
    ),
    ("reduce_sum", [(3, 6, 4)], [(3, 4)], {"axes": (1,)}, "acb -> ab c:add"),
    ("reduce_max", [(3, 6)], [()], {"axes": (0, 1)}, "ab -> - a:max b:max"),
    ("reduce_prod", [(3, 6, 4)], [(3, 4)], {"axes": (1,)}, "acb -> ab c:mul"),
    ("argmax", [(3, 6)], [(3,)], {"axes": (1,)}, "ab -> a b:argmax 1/2"),
    ("argmax", [(3, 1)], [(3,)], {"axes": (1,)}, "a. -> a"),
    ("cumsum", [(3, 6)], [(3, 6)], {"axis": 1}, "ab -> ab b:scan add"),
    ("cummax", [(3, 6)], [(3, 6)], {"axis": 0, "reverse": True}, "ab -> ab a:scan max backwards"),
    ("sort", [(6, 8), (6, 8)], [(6, 8), (6, 8)], {"dimension": 1, "num_keys": 1}, "ab ab -> ab ab b:merge 1 of 4, 4 ties"),
    ("top_k", [(6, 8)], [(6, 2), (6, 2)], {"axis": 1}, "ab -> a. a. b:top 2/4"),
    ("approx_top_k", [(6, 8)], [(6, 2), (6, 2)], {"reduction_dimension": 1}, "ab -> a. a. b:top 2/4"),
    (
        "reduce_window_sum",
        [(6, 8)],
        [(6, 7)],
        {
            "window_dimensions": (1, 2),
            "window_strides": (1, 1),
            "padding": ((0, 0), (0, 0)),
            "window_dilation": (1, 1),
            "base_dilation": (1, 1),
        },
        "a<b> -> ab",
    ),
    ("conv_general_dilated", [(4, 6, 8), (2, 6, 3)], [(4, 2, 8)], CONV, "ad<ce> bde -> abc d:add e:add"),
    ("conv_general_dilated", [(4, 6, 8), (9, 2, 3)], [(4, 9, 8)], CONV, "a(be)<df> (bc)ef -> a(bc)d e:add f:add"),
    (
        "gather",
        [(32, 8), (2, 4, 1)],
        [(2, 4, 8)],
        {"dimension_numbers": ROWS, "mode": CLIP, "fill_value": None},
        "dc ab. -> abc d:add,lookup1.0,mask-1",
    ),
    (
        "gather",
        [(4, 6, 8), (4, 6, 3, 1)],
        [(4, 6, 3)],
        {"dimension_numbers": ALONG, "mode": FILL, "fill_value": None},
        "abd abc. -> abc d:add,lookup1.0,mask-1",
    ),
    (
        "scatter_add",
        [(32, 8), (2, 4, 1), (2, 4, 8)],
        [(32, 8)],
        {"dimension_numbers": INTO_ROWS, "mode": FILL},
        "ab cd. cdb -> ab a:lookup1.0 c:add,once0 d:add,once0",
    ),
    (
        "scatter_max",
        [(32, 8), (2, 4, 1), (2, 4, 8)],
        [(32, 8)],
        {"dimension_numbers": INTO_ROWS, "mode": FILL},
        "ab cd. cdb -> ab a:lookup1.0 c:max d:max",
    ),
    (
        "scatter",
        [(32, 8), (2, 4, 1), (2, 4, 8)],
        [(32, 8)],
        {"dimension_numbers": INTO_ROWS, "mode": FILL},
        "ab ... ..b -> ab a:lookup1.0",
    ),
    ("dynamic_slice", [(6, 8), (), ()], [(1, 8)], {}, "ba - - -> .a b:add,lookup1.0,mask-1"),
    ("dynamic_slice", [(6, 8), (), ()], [(3, 8)], {}, "ba - - -> .a b:add,lookup1.0w3,mask-1"),
    ("dynamic_update_slice", [(6, 8), (1, 8), (), ()], [(6, 8)], {}, "ab .b - - -> ab a:lookup2.0"),
    ("dynamic_update_slice", [(6, 8), (5, 8), (), ()], [(6, 8)], {}, "ab .b - - -> ab a:lookup2.0w5"),
    ("enter", [(6, 8)], [(6, 8)], {}, "ab -> ab moves"),
    ("trip", [(4, 6, 8)], [(6, 8)], {}, ".ab -> ab"),
    ("collect", [(6, 8)], [(4, 6, 8)], {}, "ab -> .ab"),
    ("carry", [(6, 8), (6, 8)], [(6, 8)], {}, "ab ab -> ab"),
    ("whole", [(6, 8), (2,)], [(3, 4, 5)], {"primitive": "svd"}, ".. . -> ..."),
]


@pytest.mark.parametrize(("name", "ins", "outs", "params", "wanted"), TABLE, ids=[f"{row[0]}: {row[-1]}" for row in TABLE])
def test_tilings_follow_from_the_definition(
    name: str, ins: Shapes, outs: Shapes, params: dict[str, Literal], wanted: str
) -> None:
    assert tilings(name, ins, outs, **params) == wanted


@pytest.mark.parametrize(("name", "monoid", "bits"), [("reduce_and", "min", "and"), ("reduce_or", "max", "or")])
def test_logical_folds_have_a_collective_for_booleans_only(name: str, monoid: str, bits: str) -> None:
    assert tilings_of("bool", name, [(3, 6)], [(3,)], axes=(1,)) == f"ab -> a b:{monoid}"
    assert tilings_of("int32", name, [(3, 6)], [(3,)], axes=(1,)) == f"ab -> a b:{bits}"
    assert tilings_of("int4", name, [(3, 6)], [(3,)], axes=(1,)) == "a. -> a"


def test_a_selection_is_placed_where_its_positions_fit_their_type() -> None:
    def argmax(extent: int) -> str:
        types = [("bfloat16", (3, extent))], [("int8", (3,))]
        return written(bind(definitions["argmax"], ParamsAttr.of(axes=(1,)), *types))

    assert (argmax(127), argmax(128)) == ("ab -> a b:argmax 1/2", "a. -> a")


def test_a_window_over_everything_is_a_plain_index_only_if_it_cannot_move() -> None:
    over_all = gather_dims((1,), (), (0,), (), ())
    ins, outs = [(4,), (5, 1)], [(5, 4)]
    assert tilings("gather", ins, outs, dimension_numbers=over_all, mode=CLIP, fill_value=None) == "b a. -> ab"
    assert (
        tilings("gather", ins, outs, dimension_numbers=over_all, mode=FILL, fill_value=None)
        == "b a. -> a. b:add,lookup1.0w4,mask-1"
    )


def test_an_index_on_two_dims_is_not_placed() -> None:
    trace = parse_definitions("trace(x) out[] = sum(i) x[i, i]")["trace"]
    assert written(bind(trace, ParamsAttr.of(), [("float32", (4, 4))], [("float32", ())])) == ".. -> -"


@pytest.mark.parametrize(
    ("text", "ins", "outs", "wanted"),
    [
        ("f(x) out[(i b)] = @(x[(i b)]) size b = 4", (24,), (24,), "(a4) -> (a4)"),
        ("f(x) out[(i b), j], top[i] = @(x[(i b), j]) size b = 4", (24, 5), (24, 5), "(a4)b -> (a4)b a"),
        ("f(x) out[(b i)] = @(x[(b i)]) size b = 4", (24,), (24,), ". -> ."),
        ("f(x) out[(i b)] = @(x[(i b)]) size b = 24", (24,), (24,), ". -> ."),
        ("f(x) out[i, b] = @(x[(i b)]) size b = 4", (24,), (6, 4), "(a4) -> a."),
        ("f(x) out[i] = sum(b) x[(i b)] size b = 4", (24,), (6,), "(a4) -> a"),
    ],
)
def test_a_block_of_a_declared_size_stays_together(text: str, ins: tuple[int, ...], outs: tuple[int, ...], wanted: str) -> None:
    (definition,) = parse_definitions(text).values()
    results = [("float32", outs), ("float32", (6,))][: len(definition.results)]
    assert written(bind(definition, NO_PARAMS, [("float32", ins)], results)) == wanted


def test_a_fold_inside_a_function_is_not_placed() -> None:
    norm = parse_definitions("norm(x) out[i] = sqrt(sum(k) x[i, k] * x[i, k])")["norm"]
    assert written(bind(norm, ParamsAttr.of(), [("float32", (4, 8))], [("float32", (4,))])) == "a. -> a"


CLIPPED_ROWS: dict[str, Literal] = {
    "dimension_numbers": gather_dims((1,), (0,), (0,), (), ()),
    "mode": CLIP,
    "fill_value": None,
}
CLIPPED_ALONG: dict[str, Literal] = {**CLIPPED_ROWS, "dimension_numbers": ALONG}
F32 = Record("dtype", (("name", "float32"),))
RESTORED: list[tuple[str, Shapes, Shapes, dict[str, Literal], dict[str, Literal]]] = [
    ("reshape", [(4, 6)], [(2, 12)], {}, {"new_sizes": (2, 12), "dimensions": None, "sharding": None}),
    ("broadcast_in_dim", [(6,)], [(3, 6)], {"broadcast_dimensions": (1,)}, {"shape": (3, 6), "sharding": None}),
    ("iota", [], [(3, 6)], {"dimension": 1}, {"shape": (3, 6), "sharding": None}),
    ("slice", [(9, 8)], [(4, 8)], {"start_indices": (1, 0), "strides": (2, 1)}, {"limit_indices": (8, 8)}),
    ("slice", [(9, 8)], [(4, 8)], {"start_indices": (1, 0), "strides": None}, {"limit_indices": (5, 8)}),
    (
        "conv_general_dilated",
        [(4, 6, 8), (9, 2, 3)],
        [(4, 9, 8)],
        CONV,
        {"feature_group_count": 3, "batch_group_count": 1, "out_sharding": None, "preferred_element_type": F32},
    ),
    ("top_k", [(6, 8)], [(6, 2), (6, 2)], {"axis": 1}, {"k": 2}),
    ("dynamic_slice", [(6, 8), (), ()], [(1, 4)], {}, {"slice_sizes": (1, 4)}),
    (
        "gather",
        [(32, 8), (2, 1)],
        [(2, 8)],
        {"dimension_numbers": gather_dims((1,), (0,), (0,), (), ()), "mode": CLIP, "fill_value": None},
        {"slice_sizes": (1, 8)},
    ),
    (
        "gather",
        [(4, 6, 8), (4, 6, 3, 1)],
        [(4, 6, 3)],
        {"dimension_numbers": ALONG, "mode": CLIP, "fill_value": None},
        {"slice_sizes": (1, 1, 1)},
    ),
    ("add", [(6,), (6,)], [(6,)], {}, {}),
]


@pytest.mark.parametrize(("name", "ins", "outs", "params", "wanted"), RESTORED)
def test_extents_are_restored_from_types(
    name: str, ins: Shapes, outs: Shapes, params: dict[str, Literal], wanted: dict[str, Literal]
) -> None:
    assert restore(definitions[name], ParamsAttr.of(**params), ins, [("float32", shape) for shape in outs]) == wanted
    assert wanted.keys() <= definitions[name].dropped


def functions(definition: Definition) -> list[str]:
    pending, found = list[Term]([definition.body]), list[str]()
    while pending:
        expr = pending.pop()
        if isinstance(expr, Apply) and expr.function not in ARITHMETIC:
            found.append(definition.name if expr.function == "@" else expr.function)
        pending += children(expr)
    return found


def test_every_function_of_a_definition_is_known() -> None:
    assert len(definitions) == len([*definitions]) > 120
    known = {*scalar_functions.SCALAR_FUNCTIONS, *whole_dims.FUNCTIONS}
    unknown = {f for d in definitions.values() for f in functions(d) if f not in known}
    # The pseudo-op of a carry is never run, and a primitive without a definition cannot be.
    assert unknown == {"either", "whole"}


MISTAKES = {
    "add(lhs, rhs) out[i..] = lhs[i..] + rgs[i..]": """\
error: `rgs` is not an operand
  --> <definitions>:1:37
   |
 1 | add(lhs, rhs) out[i..] = lhs[i..] + rgs[i..]
   |                                     ^^^ the operands are listed in the parentheses before
help: did you mean `rhs`?""",
    "neg(x)  out[i..] = -x[j..]": """\
error: `j..` is not bound
  --> <definitions>:1:23
   |
 1 | neg(x)  out[i..] = -x[j..]
   |                       ^^^ write an index on the left of `=`, or fold over it""",
    "neg(x)  out[i..] = -x[i..\nabs(x) out[i..] = @(x[i..])": """\
error: this definition cannot be read
  --> <definitions>:1:26
   |
 1 | neg(x)  out[i..] = -x[i..
   |                          ^ the definition ends too early""",
    "neg(x)  out[i..] = x[i..] ?": """\
error: this definition cannot be read
  --> <definitions>:1:27
   |
 1 | neg(x)  out[i..] = x[i..] ?
   |                           ^ `?` is not expected here""",
    "neg(x)  out[i..] = x[i..] where = 3": """\
error: this definition cannot be read
  --> <definitions>:1:33
   |
 1 | neg(x)  out[i..] = x[i..] where = 3
   |                                 ^ `=` is not expected here""",
    "sum(src)  out[i..] = sum(k..) src[i.., k..]  at scr k = axes": """\
error: `scr` is neither an operand nor a result
  --> <definitions>:1:49
   |
 1 | sum(src)  out[i..] = sum(k..) src[i.., k..]  at scr k = axes
   |                                                 ^^^
help: did you mean `src`?""",
    "sum(src)  out[i..] = sum(k..) src[i.., k..]  at src q = axes": """\
error: `q` is not an index of this definition
  --> <definitions>:1:53
   |
 1 | sum(src)  out[i..] = sum(k..) src[i.., k..]  at src q = axes
   |                                                     ^""",
    "neg(x)  out[i..] = x[i..]\n# again\nabs, neg(x)  out[i..] = x[i..]": """\
error: `neg` is defined twice
  --> <definitions>:3:6
   |
 3 | abs, neg(x)  out[i..] = x[i..]
   |      ^^^""",
    "take(x)  out[i..] = x[i..]  by window": """\
error: no front end is called `window`
  --> <definitions>:1:32
   |
 1 | take(x)  out[i..] = x[i..]  by window
   |                                ^^^^^^
help: did you mean `windows`?""",
    "rows(x, ids)  out[i] = sum(v) [v = ids[i] + w] * x[v]": """\
error: nothing says where the window `w` lies
  --> <definitions>:1:45
   |
 1 | rows(x, ids)  out[i] = sum(v) [v = ids[i] + w] * x[v]
   |                                             ^ `by windows` does, for ops like `gather`""",
    "like(x)  out[i] = x[i]  extents n = |j|": """\
error: `j` is not bound
  --> <definitions>:1:38
   |
 1 | like(x)  out[i] = x[i]  extents n = |j|
   |                                      ^ write an index on the left of `=`, or fold over it""",
    "row(xs*)  out[i, +j] = xs*[i, j]": """\
error: `xs*` stands for several operands
  --> <definitions>:1:24
   |
 1 | row(xs*)  out[i, +j] = xs*[i, j]
   |                        ^^^ read each of them as `xs`""",
    "hit(ids)  out[v, i] = [v = ids[i]]": """\
error: a guard is a factor of what a fold folds, and the only guard there
  --> <definitions>:1:24
   |
 1 | hit(ids)  out[v, i] = [v = ids[i]]
   |                        ^ write it as in `sum(i) [v = ids[i]] * x[i]`""",
    "pick(x, a, b)  out[i] = sum(v, w) [v = a[i]] * [w = b[i]] * x[v, w]": """\
error: a guard is a factor of what a fold folds, and the only guard there
  --> <definitions>:1:36
   |
 1 | pick(x, a, b)  out[i] = sum(v, w) [v = a[i]] * [w = b[i]] * x[v, w]
   |                                    ^ write it as in `sum(i) [v = ids[i]] * x[i]`""",
    "norm(x)  sum(j) out[i] = x[i, j]": """\
error: write the fold after `=`; only `@` with several results takes folds on the left
  --> <definitions>:1:10
   |
 1 | norm(x)  sum(j) out[i] = x[i, j]
   |          ^^^""",
    "both(x)  left[i], right[i] = x[i]": """\
error: several results need the op's own function: `= @(...)`
  --> <definitions>:1:19
   |
 1 | both(x)  left[i], right[i] = x[i]
   |                   ^^^^^""",
    "next(x)  out[i] = 1 + argmax(j) x[i, j]": """\
error: `argmax` selects elements of one operand
  --> <definitions>:1:23
   |
 1 | next(x)  out[i] = 1 + argmax(j) x[i, j]
   |                       ^^^^^^ write it as `out[i] = argmax(j) x[i, j]`""",
    "least(x)  out[i, j] = argmin(k <= j) x[i, k]": """\
error: `argmin` selects elements of one operand
  --> <definitions>:1:23
   |
 1 | least(x)  out[i, j] = argmin(k <= j) x[i, k]
   |                       ^^^^^^ write it as `out[i] = argmin(j) x[i, j]`""",
    "best(x)  out[i, k:] = top(j) x[i, j]": """\
error: `top` has 2 results: the elements and their positions
  --> <definitions>:1:23
   |
 1 | best(x)  out[i, k:] = top(j) x[i, j]
   |                       ^^^""",
    "best(x)  value[i], out[i] = argmax(j) x[i, j]": """\
error: `argmax` has 1 result: positions
  --> <definitions>:1:29
   |
 1 | best(x)  value[i], out[i] = argmax(j) x[i, j]
   |                             ^^^^^^""",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_definition_gets_a_caret(text: str) -> None:
    with pytest.raises(Error) as caught:
        parse_definitions(text)
    assert f"error: {caught.value}" == MISTAKES[text]


def test_each_definition_of_the_file_means_the_same_when_it_is_read_alone() -> None:
    assert dict(definitions) == parse_definitions(definitions.source)


def test_a_mistake_in_one_definition_of_a_file_has_its_location(tmp_path: Path) -> None:
    file = tmp_path / "some.def"
    file.write_text("# Two of them.\n\nneg(x)    out[i..] = -x[i..]\nadd(lhs, rhs)\n          out[i..] = lhs[i..] + rsh[i..]\n")
    some = Definitions(file)
    assert some["neg"].name == "neg"
    with pytest.raises(Error) as caught:
        some["add"]
    assert str(caught.value.location) == f"{file}:5:33"
    assert caught.value.location is not None and caught.value.location.text == "          out[i..] = lhs[i..] + rsh[i..]"


def test_shapes_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(Error, match="`i` has extent 4 in dim 0 of `lhs`, and 5 in dim 0 of `rhs`"):
        tilings("add", [(4, 8), (5, 8)], [(4, 8)])
    with pytest.raises(Error, match="does not take an array of shape"):
        tilings("add", [(4, 8), (8,)], [(4, 8)])


@pytest.mark.parametrize(
    ("text", "ins", "outs", "operands", "results", "monoids"),
    [
        (
            "norm_bwd(x, w, g) dx[b.., d:], sum(b..) dw[d:] = @(x[b.., d:], w[d:], g[b.., d:])",
            [(8, 4), (4,), (8, 4)],
            [(8, 4), (4,)],
            (((0,), ()), ((),), ((0,), ())),
            (((0,), ()), ((),)),
            ("add",),
        ),
        (
            "attend(q, k, v) out[s, e], top[s] = @(q[s, d:], k[t:, d:], v[t:, e])",
            [(8, 4), (6, 4), (6, 12)],
            [(8, 12), (8,)],
            (((0,), ()), ((), ()), ((), (1,))),
            (((0,), (1,)), ((0,),)),
            (None, None),
        ),
        (
            "mixed(x) sum(i) a[j], max(i) b[j], c[i, j] = @(x[i, j])",
            [(8, 4)],
            [(4,), (4,), (8, 4)],
            (((), (0,)),),
            (((0,),), ((0,),), ((), (0,))),
            (None,),
        ),
    ],
)
def test_some_results_are_folded_over_an_index_and_others_do_not_depend_on_it(
    text: str,
    ins: list[tuple[int, ...]],
    outs: list[tuple[int, ...]],
    operands: object,
    results: object,
    monoids: tuple[str | None, ...],
):
    (definition,) = parse_definitions(text).values()
    instance = bind(definition, NO_PARAMS, [("float32", shape) for shape in ins], [("float32", shape) for shape in outs])
    sides = (tuple(tuple(map(numbers, dims)) for dims in side) for side in (instance.operands, instance.results))
    assert tuple(sides) == (operands, results)
    assert tuple(index.monoid for index in instance.indices) == monoids


def test_an_element_is_looked_up_without_a_front_end():
    sums = parse_definitions("segment_sum(x, ids) out[v, j..] = sum(i) [v = ids[i]] * x[i, j..]")["segment_sum"]
    instance = bind(sums, NO_PARAMS, [("float32", (8, 4)), ("int32", (8,))], [("float32", (16, 4))])
    rows = next(index for index in instance.indices if index.extent == 16)
    assert (rows.parts(Lookup), masked(rows)) == ([Lookup(1, ELEMENT, 1)], (0,))
    rows_of = parse_definitions("rows_of(x, ids) out[i.., j] = sum(v) [v = ids[i..]] * x[v, j]")["rows_of"]
    instance = bind(rows_of, NO_PARAMS, [("float32", (16, 4)), ("int32", (8, 2))], [("float32", (8, 2, 4))])
    rows = next(index for index in instance.indices if index.extent == 16)
    assert (rows.parts(Lookup), masked(rows), rows.monoid) == ([Lookup(1, ELEMENT, 1)], (-1,), "add")


def test_a_definition_that_replaces_another_gets_a_new_name(tmp_path: Path):
    (tmp_path / "some.def").write_text("neg(x) out[i..] = -x[i..]\n")
    some = Definitions(tmp_path / "some.def")
    (added,) = parse_definitions("twice(x) out[i..] = 2 * x[i..]").values()
    assert [some.add(added).name, some.add(added).name, some.add(some["neg"]).name] == ["twice", "twice.2", "neg.2"]
    assert ([*some], [*some.added]) == (["neg"], ["twice", "twice.2", "neg.2"])
    assert some["twice.2"] == replace(added, name="twice.2")


@pytest.mark.parametrize("name", definitions)
def test_a_definition_reads_back_from_its_print(name: str):
    assert parse_definitions(printer.definition(definitions[name]))[name] == definitions[name]


PRINTED = [
    "f(x, y)   out[i..] = (x[i..] + y[i..]) * x[i..] - (-y[i..])",
    "f(x, y)   out[i] = x[i] - (y[i] - x[i]) / (y[i] * x[i])",
    "f(x, w)   out[i] = (sum(k) x[i, k] * w[k]) * w[i] + sum(k) w[k] * x[i, k]",
    "f(x*, y)   out*[i..] = x[i..] * y[]",
    "f(x, w)   out[b.., d:], sum(b..) dw[d:] = @(x[b.., d:], w[d:])",
    "f(x, ids)   out[v, j..] = sum(i) [v = ids[i]] * x[i, j..]",
]


@pytest.mark.parametrize("text", PRINTED)
def test_the_printer_writes_only_the_parentheses_that_are_needed(text: str):
    (definition,) = parse_definitions(text).values()
    assert printer.definition(definition) == text
    assert parse_definitions(printer.definition(definition)) == {"f": definition}
