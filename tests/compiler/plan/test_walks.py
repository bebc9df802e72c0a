"""A long conversation: tactics are applied, undone and branched. Nothing leaks, and all ways to a trace end in one plan."""

import gc
import random
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from generated_tactics import KINDS, Tactic, tactics
from hypothesis import given, settings, strategies as st

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=4, model=2)
TACTICS = 1_000
LEAST = 500
"""Fewer objects than a plan has with what it answers; a few are JAX's and pytest's."""
Tree: TypeAlias = Any

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false


def loss(params: Tree, batch: Tree) -> jax.Array:
    h = jnp.tanh(batch["x"] @ params["w1"])
    attended = jax.nn.softmax(h @ h.T) @ h
    return jnp.mean((attended @ params["w2"] - batch["y"]) ** 2)


def step(params: Tree, batch: Tree) -> tuple[Tree, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


ARGS = {"w1": zeros(8, 16), "w2": zeros(16, 8)}, {"x": zeros(32, 8), "y": zeros(32, 8)}


def start() -> Plan:
    return pt.plan(step, MESH, *ARGS)


@dataclass
class Walk:
    """The plans that a person has at hand: a path of plans that they can undo, and plans kept aside to branch from."""

    path: list[Plan] = field(default_factory=lambda: [start()])
    aside: list[Plan] = field(default_factory=list[Plan])
    made: list[weakref.ref[Plan]] = field(default_factory=list[weakref.ref[Plan]])

    def apply(self, tactic: Tactic) -> None:
        after = tactic.apply(self.path[-1])
        if after is not self.path[-1]:
            self.path.append(after)
            self.made.append(weakref.ref(after))

    def undo(self, steps: int) -> None:
        self.path = self.path[: max(1, len(self.path) - steps)]

    def branch(self, number: int) -> None:
        """Keeps this plan aside and goes on from another one, which may be the first."""
        self.aside = [self.path[0], *self.aside, self.path[-1]][-3:]
        self.path = [self.path[0], *self.aside[number % 4 : number % 4 + 1]]

    def alive(self) -> int:
        return sum(each() is not None for each in self.made)


def readings(plan: Plan) -> tuple[object, ...]:
    """What a plan answers, and the program of each device."""
    return plan.trace, plan.layout(), plan.counts(), plan.bytes_per_device(), plan.memory().bytes, str(plan.spmd())


def replayed(plan: Plan) -> Plan:
    return pt.replay(step, MESH, plan.trace, *ARGS)


# --- a thousand -----------------------------------------------------------------------------------------------------------


def drawn(seed: int) -> Iterator[Tactic]:
    rng, kinds = random.Random(seed), [kind for kind, weight in KINDS.items() for _ in range(weight)]
    while True:
        yield Tactic(rng.choice(kinds), *(rng.randrange(1 << 10) for _ in range(3)))


def walked(seed: int) -> Walk:
    """A thousand tactics, of which some are refused; after each sixth some are undone, and after each twentieth it branches."""
    walk = Walk()
    for number, tactic in zip(range(TACTICS), drawn(seed), strict=False):
        walk.apply(tactic)
        if number % 6 == 5:
            walk.undo(tactic.value % 6)
        if number % 20 == 19:
            walk.branch(tactic.axis)
    return walk


def objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_a_thousand_tactics_leave_nothing_behind() -> None:
    """After the first time everything that is kept for later is there: the same conversation again adds less than one plan."""
    walked(7)
    walk = walked(7)
    made = walk.made
    assert len(made) > TACTICS / 4
    gc.collect()
    assert walk.alive() <= len(walk.path) + len(walk.aside)
    del walk
    before = objects()
    assert not any(each() for each in made)
    again = walked(7)
    assert len(again.made) == len(made)
    del again
    assert objects() < before + LEAST


@cache
def kept() -> Sequence[Plan]:
    walk = walked(11)
    return [*walk.path[1:], *walk.aside][-4:]


def test_after_a_thousand_tactics_a_plan_is_what_its_trace_says() -> None:
    for plan in kept():
        assert readings(plan) == readings(replayed(plan))


# --- generated ------------------------------------------------------------------------------------------------------------

Step: TypeAlias = Tactic | int
steps: st.SearchStrategy[list[Step]] = st.lists(st.one_of(tactics, tactics, tactics, st.integers(-3, 9)), max_size=12)


@given(steps)
@settings(max_examples=15)
def test_undoing_and_branching_ends_in_the_plan_that_the_trace_makes(steps: list[Step]) -> None:
    """A negative number undoes as many tactics, another one branches."""
    walk = Walk()
    first = walk.path[0].layout()
    for each in steps:
        match each:
            case Tactic():
                walk.apply(each)
            case int() if each < 0:
                walk.undo(-each)
            case _:
                walk.branch(each)
    plan = walk.path[-1]
    assert readings(plan) == readings(replayed(plan))
    assert start().layout() == first
