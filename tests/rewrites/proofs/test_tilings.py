"""The tilings of definitions are proved for all sizes; a tiling that is wrong is refuted, with sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.dialects.definitions.ground_form import along
from partita.dialects.definitions.grounding import ground
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.definitions.registry import definitions
from partita.dialects.definitions.syntax_tree import Concat, Definition
from partita.dialects.definitions.tilings import Instance, bind
from partita.dialects.ground.dtypes import dtype_of
from partita.dialects.reference import scalar_functions
from partita.dialects.reference.evaluate import evaluate
from partita.rewrites.proofs.of_tilings.blocks import Exact, lemmas
from partita.rewrites.proofs.of_tilings.definitions import Meaning
from partita.rewrites.proofs.of_tilings.placements import BLOCK, COUNT
from partita.rewrites.proofs.of_tilings.samples import Sample, samples, unsampled
from partita.rewrites.proofs.of_tilings.tilings import (
    GENERIC_BLOCK,
    NOT_PROVED,
    classes,
    index_name,
    placements,
    prove,
    refuted,
    rows,
    stated,
)
from partita.rewrites.proofs.solver import answer, z3

SAMPLED = [each for each in classes() if unsampled(each[0]) is None]


def by_name(alike: list[Definition]) -> str:
    return alike[0].name


def test_every_listed_tiling_exists() -> None:
    assert {name for name, _ in NOT_PROVED} <= set(definitions)


def test_every_lemma_of_tilings_is_proved() -> None:
    found = lemmas()
    assert found
    assert all(found.values()), found


# The meaning is the interpreter's.

TYPES = {"and": "int32", "threefry2x32": "uint32"}
"""The types of the operands of those that take no floats."""
BORDERS = ("carry", "join", "trip", "collect", "whole")
"""Those that the interpreter does not run by their definitions."""


def has_a_meaning_by_elements(definition: Definition) -> bool:
    text = definition.text
    return definition.name not in BORDERS and ":" not in text.split("=")[0] and not re.search(r"= (arg|top|merge)", text)


def numbers(sample: Sample) -> tuple[list[np.ndarray[Any, Any]], Any]:
    """Operands of small sizes, and the types of the results."""
    given = dict(zip(sample.names, (2, 3, 2, 2, 2, 3, 2, 2), strict=False))
    ins, outs = sample.types(given.__getitem__)
    dtype = TYPES.get(sample.definition.name)
    random = np.random.default_rng(0)
    arrays = [random.integers(0 if dtype else -3, 4, shape).astype(dtype_of(dtype or name)) for name, shape in ins]
    return arrays, [(dtype or name, shape) for name, shape in outs]


def by_meaning(sample: Sample, arrays: list[np.ndarray[Any, Any]], outs: Any) -> Iterator[np.ndarray[Any, Any]]:
    definition, shapes = sample.definition, [each.shape for each in arrays]
    dtype = dtype_of(outs[0][0])

    def known(name: str, arguments: tuple[Any, ...]) -> Any:
        if name.startswith("operand "):
            array = arrays[int(name.removeprefix("operand "))]
            # Of a concatenation, all parts are read everywhere.
            return array[arguments].item() if all(0 <= i < n for i, n in zip(arguments, array.shape, strict=True)) else 0
        at, *args = arguments if "@" in definition.text and name == definition.name else (0, *arguments)
        given = [np.asarray(each, arrays[0].dtype) for each in args]
        function = scalar_functions.divide if name == "div" else None
        found = [function(*given)] if function else scalar_functions.apply(name, given, sample.params, dtype)
        return found[at].item()

    world = Exact(guess=known)
    form = ground(definition, sample.params, shapes, [shape for _, shape in outs])
    meaning = Meaning(world, form, shapes, int, lambda array, at, _: world.unknown(f"operand {array}", *at))
    for number, (name, shape) in enumerate(outs):
        result = np.zeros(shape, dtype_of(name))
        _, target = meaning.targets(number)[0]
        extents: dict[object, int] = {}
        for at, dim in enumerate(target.dims):
            extents |= {(target.array, at): shape[at]} if isinstance(dim, Concat) else {i: form.extents[i] for i in along(dim)}
        for values in product(*map(range, extents.values())):
            env = dict(zip(extents, values, strict=True))
            result[meaning.positions(target, env)] = meaning.result(number, env)
        yield result


MEANT = [each for each in SAMPLED if has_a_meaning_by_elements(each[0])]


@pytest.mark.parametrize("alike", MEANT, ids=by_name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_meaning_of_a_definition_on_ints_is_the_interpreters(alike: list[Definition]) -> None:
    for sample in samples(alike[0]):
        arrays, outs = numbers(sample)
        expected = evaluate(alike[0].name, sample.params, arrays, outs)
        for found, each in zip(by_meaning(sample, arrays, outs), expected, strict=True):
            np.testing.assert_allclose(found, each, rtol=1e-5, err_msg=str(sample))


# A tiling that is wrong is refuted.

Change = Callable[[Instance, int], Instance]


def at(instance: Instance, number: int, **fields: Any) -> Instance:
    made = replace(instance.indices[number], **fields)
    return replace(instance, indices=tuple(made if at == number else each for at, each in enumerate(instance.indices)))


def whole(operand: int) -> Change:
    def change(found: Instance, _: int) -> Instance:
        dims = (((),) * len(each) if at == operand else each for at, each in enumerate(found.operands))
        return replace(found, operands=tuple(dims))

    return change


def as_major_digits(found: Instance, _: int) -> Instance:
    dims = tuple(tuple(each._replace(minor=1, extent=None) for each in dim) for dim in found.operands[0])
    return replace(found, operands=(dims, *found.operands[1:]))


def folded_by(monoid: str | None) -> Change:
    return lambda found, number: at(found, number, monoid=monoid)


def requires_nothing(found: Instance, number: int) -> Instance:
    return at(found, number, terms=())


BIASED = "biased(x, w, b)   out[i] = b[i] + sum(k) x[i, k] * w[k]"
WRONG: dict[str, tuple[str, str, Change]] = {
    "an operand is not cut": ("add", "i", whole(0)),
    "a factor of a product is not cut": ("dot_general", "k", whole(1)),
    "the digits of a dim lie elsewhere": ("reshape", "b", as_major_digits),
    "a reduced index is not folded": ("reduce_sum", "k", folded_by(None)),
    "a maximum is folded by a sum": ("reduce_max", "k", folded_by("add")),
    "a sum is folded by a maximum": ("dot_general", "k", folded_by("max")),
    "positions are without the offset": ("iota", "j", requires_nothing),
    "blocks of a scan are not carried on": ("cumsum", "j", requires_nothing),
    "a term outside of a sum counts on all devices": (BIASED, "k", requires_nothing),
}


def defined(text: str) -> Definition:
    return next(iter(parse_definitions(text).values())) if "(" in text else definitions[text]


def first(definition: Definition, index: str) -> tuple[Sample, int]:
    """The first sample with an index of this name, and the index."""
    return next((sample, number) for sample, number, at in placements(samples(definition)) if index_name(at) == index)


@pytest.mark.parametrize("what", WRONG)
def test_a_tiling_that_is_wrong_is_refuted_with_sizes(what: str) -> None:
    text, index, change = WRONG[what]
    sample, number = first(defined(text), index)
    found = prove(sample, number, binder=lambda *types: change(bind(*types), number))
    assert found.state == "refuted"
    assert re.search(r"devices = \d, rows = \d.*: (result 0 on device \d at|on devices, .* does not fit)", found.how), found.how


@pytest.mark.parametrize(("text", "index"), [(text, index) for text, index, _ in WRONG.values()])
def test_no_small_sizes_refute_a_tiling_that_is_proved(text: str, index: str) -> None:
    assert refuted(*first(defined(text), index)) is None


@pytest.mark.parametrize("alike", SAMPLED, ids=by_name)
def test_what_a_tiling_takes_can_hold_with_two_devices_and_blocks_of_two(alike: list[Definition]) -> None:
    known = {index_name(at): at for _, _, at in placements(samples(alike[0]))}
    for index, at in known.items():
        if (alike[0].name, index) not in NOT_PROVED:
            _, _, asked, beyond = stated(at, GENERIC_BLOCK)
            assert answer([*asked, *beyond, z3.Int(COUNT) == 2, z3.Int(BLOCK) == 2])[0] == "sat"


# A user's definition is proved as one of the file.

USERS = {
    "swish(x, g)   out[i..] = @(x[i..], g[i..])": {"i": "x, g -> out"},
    BIASED: {"i": "x, b -> out", "k": "x, w -> {add}"},
    "less(x, y)   out[i] = x[i] - sum(k) y[i, k]": {"i": "x, y -> out", "k": "y -> {add}"},
    "attend(q, k, v)   out[b.., i, d] = sum(j) @(q[b.., i], k[b.., j]) * v[b.., j, d]": {},
    "clipped(x, y)   out[i] = maximum(x[i], max(k) y[i, k])": {"i": "x, y -> out", "k": "y -> {max}"},
    "rms_norm(x, w)   out[b.., d:] = @(x[b.., d:], w[d:])": {"b": "x -> out"},
}


@pytest.mark.parametrize("text", USERS)
def test_a_users_definition_is_proved_as_it_is_written(text: str) -> None:
    found = list(rows(defined(text)))
    assert {row.verdict.state for row in found} == {"proved"}
    assert not USERS[text] or {row.index: row.tiling for row in found} == USERS[text]
