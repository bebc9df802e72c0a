"""The steps of redistribution are proved as they are emitted; steps that are wrong by one are refuted, with sizes."""

# Elements are numbers of any kind, and what is patched has any arguments.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from lockstep import run_steps

from partita.dialects.layouts import Layout
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import Place, coordinate
from partita.dialects.ranges.denotation import local_block
from partita.rewrites.proofs.of_steps import exchanges, steps
from partita.rewrites.proofs.of_steps.exchanges import between, even, halo, permute, pieces, windows
from partita.rewrites.proofs.of_steps.local_arrays import ANY, Element, Folded, Here, Local
from partita.rewrites.proofs.of_steps.step_laws import StepLaw, step_laws
from partita.rewrites.proofs.of_steps.steps import position, tiled
from partita.rewrites.proofs.symbolic.explore import Law, explore
from partita.rewrites.proofs.symbolic.given import Ints
from partita.rewrites.proofs.verdict import Nothing
from partita.rewrites.redistribute.kinds import halo as halos
from partita.rewrites.redistribute.kinds.all_gather import AllGather
from partita.rewrites.redistribute.kinds.all_to_all import AllToAll
from partita.rewrites.redistribute.kinds.folds import ReduceScatter
from partita.rewrites.redistribute.kinds.local import Slice
from partita.rewrites.redistribute.kinds.permute import Permute
from partita.rewrites.redistribute.kinds.pieces import Trade
from partita.rewrites.redistribute.kinds.tiled import Tiled
from partita.rewrites.redistribute.steps import Step

LAWS = [pytest.param(each, id=f"{each.kind} {each}") for each in step_laws()]


class Twos(Ints):
    """Takes two for each size but those that are given, and the last number of those below an end."""

    def number(self, name: str, least: int = 0) -> int:
        return self.numbers.get(name, max(least, 2))

    def integer(self, name: str) -> int:
        return self.numbers[name]

    def below(self, name: str, end: Any) -> int:
        return end - 1


HALOS = [{"after before": 1, "after block": 3}, {"before before": 0, "before width": 3, "after before": 0}]


@pytest.mark.parametrize("law", LAWS)
def test_what_a_step_asks_for_can_hold_with_two_devices_and_blocks_of_two(law: StepLaw) -> None:
    def holds(given: Mapping[str, int]) -> bool:
        try:
            return law.holds(Twos({"extent": 6 if "3 devices" in law.what else 4, **given}))
        except (Nothing, KeyError):
            return False

    assert any(map(holds, HALOS))


# Over ints, the meanings of ops are what the interpreter makes of them, and those of layouts what ranges denote.


def emitted(law: StepLaw, seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Step, Local, Local]]:
    """The steps that a law makes with small numbers, each with the local arrays before and after it."""
    found = list[tuple[Step, Local, Local]]()
    real = steps.made

    def made(step: Step, x: Local) -> Local:
        found.append((step, x, real(step, x)))
        return found[-1][2]

    with monkeypatch.context() as patched:
        for module in (steps, exchanges):
            patched.setattr(module, "made", made)
        with suppress(Nothing):
            assert law.holds(Ints(random=Random(seed), most=2))
    yield from found


def places(step: Step) -> list[Any]:
    return [*dict.fromkeys((*step.before.axes, *step.after.axes, *step.axes))]


def number(of: Element) -> int:
    """An element as a number: another one for each position."""
    if isinstance(of, Folded):
        return sum(number(of.of(each)) for each in range(of.count))
    if isinstance(of, tuple):
        return 1 + sum(each * 31**at for at, each in enumerate(of))
    return 0 if of is ANY else int(of)


def local_values(x: Local, here: Here) -> list[Element]:
    return [x.at(here, index) for index in product(*map(range, x.shape))]


@pytest.mark.parametrize("law", LAWS)
def test_ops_do_to_local_arrays_what_the_interpreter_does(law: StepLaw, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    for seed in range(100):
        if count == 6:
            break
        for step, x, y in emitted(law, seed, monkeypatch):
            axes = places(step)
            devices = axes[0].axis.devices.axes if axes else ()
            size = prod(n for _, n in devices)
            if size > 64 or prod(x.shape) > 512:
                continue
            every = [{axis: coordinate(axis, device) for axis in axes} for device in range(size)]
            values: list[Any] = [np.array(list(map(number, local_values(x, at))), np.int32).reshape(x.shape) for at in every]
            mesh = Mesh(**dict(devices)) if devices else Mesh(a=1)
            got = run_steps([step], values, mesh)
            for at, local in zip(every, got, strict=True):
                assert local.shape == y.shape
                wanted = local_values(y, at)
                assert all(w is ANY or number(w) == g for w, g in zip(wanted, local.ravel().tolist(), strict=True))
            count += 1
    assert count


@pytest.mark.parametrize("law", LAWS)
def test_positions_are_what_ranges_denote(law: StepLaw, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(12):
        for step, _, _ in emitted(law, seed, monkeypatch):
            for layout in (step.before, step.after):
                for at in iterations(layout):
                    for dim, n in zip(layout.dims, layout.local_shape, strict=True):
                        found = [position(dim, at, i) for i in range(n)]
                        assert [p if kind == "inside" else None for kind, p in found] == local_block(dim, at)


def iterations(layout: Layout) -> Iterator[Mapping[Place, int]]:
    for numbers in product(*(range(axis.size) for axis in layout.axes)):
        yield dict(zip(layout.axes, numbers, strict=True))


# Steps that are wrong.


def block_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Tiled.block.fget
    assert real is not None
    monkeypatch.setattr(Tiled, "block", property(lambda step: real(step) + 1))


def another_device_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Permute.pairs
    monkeypatch.setattr(Permute, "pairs", lambda step: [(sender, (to + 1) % len(step.devices())) for sender, to in real(step)])


def moved_pieces(change: Callable[[halos.Piece], halos.Piece]) -> Callable[[pytest.MonkeyPatch], None]:
    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        real = halos.hops

        def hops(*args: Any) -> tuple[halos.Hop, ...]:
            return tuple(hop._replace(pieces=tuple(map(change, hop.pieces))) if hop.moves else hop for hop in real(*args))

        monkeypatch.setattr(halos, "hops", hops)

    return apply


def other_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "replace", lambda step, before, after: replace(step, before=after, after=before))


def units_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Trade.joined
    monkeypatch.setattr(Trade, "joined", lambda trade: [row[::-1] for row in real(trade)])


def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pass


FALSE: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Law]] = {
    "a slice, its block off by one": (block_off_by_one, tiled(Slice, "a", "p*a'*q --> p*a*q")),
    "a gather, its block off by one": (block_off_by_one, tiled(AllGather, "a", "p*a*q --> p*a'*q")),
    "a reduce_scatter, its block off by one": (block_off_by_one, tiled(ReduceScatter, "a", "a'*q {+a} --> a*q")),
    "a slice over two axes in another order": (nothing, tiled(Slice, "ca", "p*c'*a'*q --> p*a*c*q")),
    "an all_to_all, its layouts the other way round": (
        other_way_round,
        tiled(AllToAll, "a", "p*a*q*a'*r --> p*a'*q*a*r"),
    ),
    "a permute, shifted by a device": (another_device_sends, between(permute, "p*a*m --> p*b*m", a=2, b=2)),
    "a halo, its first row off by one": (
        moved_pieces(lambda piece: piece._replace(first=piece.first - 1)),
        halo(2, even, windows(1, "before block")),
    ),
    "a halo that begins a row late": (
        moved_pieces(lambda piece: piece._replace(begin=piece.begin + 1)),
        halo(2, even, windows(1, "before block")),
    ),
    "a halo, its receivers swapped": (
        moved_pieces(lambda piece: piece._replace(receiver=piece.sender, sender=piece.receiver)),
        halo(3, even, windows(1, "before block")),
    ),
    "pieces, their units in another order": (units_in_another_order, between(pieces, "a*2*m --> 2*a*m", a=2)),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_wrong_step_is_refuted_with_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, law = FALSE[name]
    change(monkeypatch)
    found = explore(StepLaw("", "", law).holds)
    assert found.state == "refuted", found
    assert " = " in found.how
