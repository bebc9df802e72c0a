"""What placing an index requires, and how devices may hold it: there is a law for all of it, or the index is not placed."""

from __future__ import annotations

import pytest

from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.definitions.requirement_terms import Held
from partita.dialects.definitions.tilings import Index, bind
from partita.dialects.params import NO_PARAMS
from partita.rewrites.decide.requirements import Placing, is_lawful, requirements

Shape = tuple[int, ...]


def index_of(text: str, extent: int, *shapes: Shape) -> Index:
    """The index of this extent, of a definition of an op on arrays of these shapes, the last of which is its result's."""
    (definition,) = parse_definitions(f"f{text}").values()
    types = [("int32" if each in ("ids", "start") else "float32") for each in definition.operands]
    ins = list(zip(types, shapes[:-1], strict=True))
    return next(each for each in bind(definition, NO_PARAMS, ins, [("float32", shapes[-1])]).indices if each.extent == extent)


# definition, extent of the index, shapes --> how devices may hold the index, and in which of these ways something is required
HELD: list[tuple[str, int, tuple[Shape, ...], Held, Held]] = [
    ("(x) out[i] = @(x[i])", 8, ((8,), (8,)), Held.ANY, Held(0)),
    ("(x) out[] = sum(i) x[i]", 8, ((8,), ()), Held.ANY, Held.PADDED | Held.WINDOWS),
    ("(x, y) out[] = y[] + sum(i) x[i]", 8, ((8,), (), ()), ~Held.WINDOWS, Held.ANY),
    ("(x) out[] = sum(i) @(x[i])", 8, ((8,), ()), Held.BLOCKS | Held.TURNS, Held.PADDED | Held.WINDOWS),
    ("(x) out[j] = sum(i <= j) x[i]", 8, ((8,), (8,)), Held.RUNS, Held.ANY),
    ("(x) out[i, j] = j", 8, ((3,), (3, 8)), Held.RUNS, Held.ANY),
    ("(x, ids) out[i] = sum(v) [v = ids[i]] * x[v]", 8, ((8,), (3,), (3,)), Held.BLOCKS | Held.PADDED, Held.ANY),
    ("(x, ids) out[v] = sum(i) [v = ids[i]] * x[i]", 8, ((3,), (3,), (8,)), Held.BLOCKS | Held.PADDED, Held.ANY),
]


@pytest.mark.parametrize(("text", "extent", "shapes", "lawful", "required"), HELD, ids=[text for text, *_ in HELD])
def test_an_index_is_placed_where_there_are_laws_for_what_it_requires(
    text: str, extent: int, shapes: tuple[Shape, ...], lawful: Held, required: Held
):
    index = index_of(text, extent, *shapes)
    assert [held for held in Held if is_lawful(index, Placing(held, 1))] == [held for held in Held if held in lawful]
    assert [held for held in Held if [*requirements(index, 0, Placing(held, 1))]] == [held for held in Held if held in required]


def test_parts_of_a_concatenation_are_put_together_unless_each_round_of_blocks_lies_in_one():
    (definition,) = parse_definitions("f(xs*) out[+j] = xs[j]").values()
    types = [("float32", (8,)), ("float32", (8,))]
    (index,) = bind(definition.with_arity(2, 1), NO_PARAMS, types, [("float32", (16,))]).indices
    assert [held for held in Held if [*requirements(index, 0, Placing(held, 1))]] == [Held.BLOCKS, Held.PADDED, Held.WINDOWS]
    assert is_lawful(index, Placing(Held.TURNS, 1))
