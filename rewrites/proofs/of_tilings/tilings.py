"""Proves the tilings of each definition, or refutes them by a counter-example with sizes.

A definition is sampled at small ranks (`samples`); each index of each sample is placed, and the statement of `placements` is
asked of the solver for all sizes: for blocks of two values or more, and for blocks of one, of which the local op has no index.
Definitions that are equal but for their names have one proof.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, TypeAlias

from ....dialects.definitions.registry import definitions
from ....dialects.definitions.syntax_tree import Definition
from ....dialects.definitions.tilings import bind
from ....dialects.ground.errors import Error
from ..record import recorded
from ..solver import EFFORT, answer, need, z3
from ..symbolic.sample import term
from ..symbolic.symbol import polynomial_of
from ..verdict import Verdict, timed
from ..world import NoMeaning
from .blocks import Blocks, Exact
from .placements import AXIS, BLOCK, COUNT, Bind, Placement, Tiling, placed
from .samples import NoSample, Sample, samples, unsampled

GENERIC_COUNT, GENERIC_BLOCK = 101, 103
GENERIC = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
"""Values by which the sizes are told apart while tilings are derived; `p` and `m` are larger, and their product."""


BEST, SORT = "`best` selects again from the best of each block", "`sort` merges sorted blocks"
NOT_PROVED: Mapping[tuple[str, str], str] = {
    **{(name, "j"): BEST for name in ("argmax", "argmin", "top_k", "approx_top_k")},
    ("sort", "j"): SORT,
    ("rev", "r"): "read through windows, whose halo is exchanged",
}
"""The tilings that are not proved, by definition and index, and why."""


def generic(sample: Sample, block: int) -> dict[str, int]:
    return {**dict(zip(sample.names, GENERIC, strict=False)), COUNT: GENERIC_COUNT, BLOCK: block}


def prove(sample: Sample, number: int, block: int = GENERIC_BLOCK, binder: Bind = bind) -> Verdict:
    """Proves a tiling for all sizes, where devices have more than one value of the index, or with `block=1` only one."""
    need()
    try:
        at = placed(sample, number, generic(sample, block), binder)
        world, tiling, asked, beyond = stated(at, block)
        if all(_holds(world, tiling, [*asked, *beyond], result) for result in range(len(at.types[1]))):
            return Verdict("proved", f"where {', '.join(map(str, beyond))}" if beyond else "")
    except NoMeaning as error:
        return Verdict("not proved", str(error))
    except Error:
        # The local op does not take what devices have.
        pass
    return refuted(sample, number, binder) or Verdict("not proved", "the solver neither proves nor refutes it")


def stated(at: Placement, block: int) -> tuple[Blocks, Tiling, list[Any], list[Any]]:
    """A tiling over terms; that each size is 2 at least; and what else was decided of them while the tiling was derived."""
    world = Blocks(count=z3.Int(COUNT), block=1 if block == 1 else z3.Int(BLOCK))
    tiling = Tiling(world, at, lambda each: term(each, z3.Int))
    made = [at.count, *([at.block] if block > 1 else []), *at.given.values()]
    asked = [tiling.size(each) >= 2 for each in made]
    facts = [each.fact(z3.Int) for each in {str(each): each for each in at.run.noted if not each.is_sure}.values()]
    return world, tiling, asked, [fact for fact in facts if answer([*asked, z3.Not(fact)], EFFORT // 100)[0] != "unsat"]


def _holds(world: Blocks, tiling: Tiling, asked: list[Any], number: int) -> bool:
    env: dict[object, Any] = {key: world.point("index") for key in tiling.indices(number)}
    here, row = {AXIS: world.point(AXIS)}, world.point("row")
    extents = [tiling.size(each) for each in tiling.indices(number).values()]
    within = [z3.And(each >= 0, each < extent) for each, extent in zip(env.values(), extents, strict=True)]
    within += [here[AXIS] >= 0, here[AXIS] < tiling.count, row >= 0, row < tiling.block]
    if tiling.at.block == 1:
        row = 0
    if tiling.is_backwards:
        here, row = {AXIS: tiling.count - 1 - here[AXIS]}, tiling.block - 1 - row
    truths = [each for each in tiling.truths(env, here, row, number) if each is not True and not _is_plain(each)]
    return not truths or answer([*asked, *within, *world.known(), z3.Not(z3.And(*truths))])[0] == "unsat"


def _is_plain(truth: Any) -> bool:
    return z3.is_expr(truth) and z3.is_true(z3.simplify(truth, som=True))


SMALL = ((2, 2), (2, 3), (3, 2), (2, 1))


def refuted(sample: Sample, number: int, binder: Bind = bind) -> Verdict | None:
    """A counter-example at small sizes, on ints; None if there is none."""
    for count, block in SMALL:
        given = {**dict(zip(sample.names, (2, 3, 4, 2, 3, 4, 2, 3, 4, 2, 3, 4), strict=False)), COUNT: count, BLOCK: block}
        at = placed(sample, number, given, binder)
        if min(map(at.run.number, at.given.values())) > 0 and (found := differs(at)) is not None:
            shown = ", ".join(f"{name} = {at.run.number(each)}" for name, each in {**given, **at.given}.items())
            return Verdict("refuted", f"{shown}: {found}")
    return None


def differs(at: Placement) -> str | None:
    """The first place where devices have another result, for given sizes; None if there is none."""
    tiling = Tiling(Exact(), at, at.run.number)
    for result in range(len(at.types[1])):
        ranges = tiling.indices(result)
        for device, row, *rest in product(
            range(tiling.count), range(tiling.block), *map(range, map(tiling.size, ranges.values()))
        ):
            env, here = dict(zip(ranges, rest, strict=True)), {AXIS: device}
            try:
                if not all(tiling.truths(env, here, row, result)):
                    return f"result {result} on device {device} at {[row, *rest]}"
            except Error as error:
                return f"on devices, {error.title}"
    return None


# The table.


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of the tilings of one index, in so many cases: at all ranks, for blocks of one value and of more."""

    definition: Definition
    index: str
    tiling: str
    cases: int
    verdict: Verdict

    @property
    def why(self) -> str:
        """Why it is not proved, or what it takes."""
        return NOT_PROVED.get((self.definition.name, self.index), self.verdict.how)

    @property
    def shown(self) -> Verdict:
        return replace(self.verdict, how=self.why)

    @property
    def is_as_stated(self) -> bool:
        """Whether it is proved, or listed, or the definition has no samples."""
        is_listed = (self.definition.name, self.index) in NOT_PROVED
        return self.verdict.state == ("not proved" if is_listed or unsampled(self.definition) else "proved")


Alike: TypeAlias = list[Definition]
"""Definitions that are equal but for their names."""


def classes() -> list[Alike]:
    """The definitions, those together that are equal but for their names."""
    found = defaultdict[Definition, list[Definition]](list)
    for each in map(definitions.__getitem__, definitions):
        found[replace(each, name="", forgotten=frozenset(), extents=(), defaults=())].append(each)
    return list(found.values())


@recorded
def rows(definition: Definition) -> tuple[Row, ...]:
    """What is known of each index of a definition."""
    try:
        every = samples(definition)
    except NoSample as error:
        return (Row(definition, "", "", 0, Verdict("not proved", str(error))),)
    found = defaultdict[str, list[tuple[str, Verdict]]](list)
    for sample, number, at in placements(every):
        for block in (GENERIC_BLOCK, 1):
            found[index_name(at)].append((described(at), timed(partial(prove, sample, number, block))))
    made: list[Row] = []
    for index, cases in found.items():
        tilings, verdicts = zip(*cases, strict=True)
        worst = min(verdicts, key=lambda each: ("refuted", "not proved", "proved").index(each.state))
        worst = replace(worst, seconds=sum(each.seconds for each in verdicts))
        text = max(tilings, key=lambda each: (not each.startswith(NOTHING), len(each)))
        made.append(Row(definition, index, text, len(cases), worst))
    return tuple(made) or (Row(definition, "", "no index can be placed", 0, Verdict("proved")),)


def placements(every: list[Sample]) -> Iterator[tuple[Sample, int, Placement]]:
    """Each index of each sample."""
    for sample in every:
        given = generic(sample, GENERIC_BLOCK)
        for number in range(len(bind(sample.definition, sample.params, *sample.types(given.__getitem__)).indices)):
            yield sample, number, placed(sample, number, given)


def index_name(at: Placement) -> str:
    """The variable of an index: that of the size that the placing changes."""
    (name,) = (name for name, each in at.given.items() if COUNT in polynomial_of(each).variables)
    return name.rstrip("0123456789").rstrip(".")


NOTHING = "nothing"


def described(at: Placement) -> str:
    """A tiling in words: the operands that it cuts, and what it makes of the results."""
    definition = at.tiling.definition

    def cut(names: list[str], arrays: Any) -> list[str]:
        return [
            name for name, dims in zip(names, arrays, strict=True) if any(each.at == at.number for dim in dims for each in dim)
        ]

    ins = [each.name for each in definition.operands for _ in definition.positions(each.name)]
    outs = [each.name for each in definition.results for _ in definition.positions(each.name)]
    results = list(dict.fromkeys(cut(outs, at.tiling.results)))
    pending = [f"{{{at.index.monoid}}}"] if at.index.monoid else []
    return f"{', '.join(dict.fromkeys(cut(ins, at.tiling.operands))) or NOTHING} -> {', '.join([*results, *pending])}"


def table() -> Iterator[tuple[tuple[str, ...], Row]]:
    """What is known of the tilings of all definitions: those that are equal but for their names have the same."""
    for alike in classes():
        yield from ((tuple(each.name for each in alike), row) for row in rows(alike[0]))
