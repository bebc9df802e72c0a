"""A program beside `jax.jit` with the same input and output shardings: results, collectives, bytes, array sizes, times.

Partita's collectives are counted in the jaxpr that it hands to JAX, those of `jax.jit` in the program that XLA compiles, on
host devices. The size of the largest array is read from the program that XLA compiles, for both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from time import perf_counter, process_time
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

import partita as pt
from partita.tests.support import jaxpr_collectives

from . import hlo
from .report import Table, machine

MESH = pt.Mesh(data=8)

Tree = Any
Step = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A program, and the tactics that say where its ranges lie."""

    name: str
    function: Callable[..., Tree]
    args: Sequence[Tree]
    tactics: Sequence[pt.Tactic | Callable[[pt.Plan], pt.Plan]]
    mesh: pt.Mesh = MESH

    @cached_property
    def plan(self) -> pt.Plan:
        return pt.plan(self.function, self.mesh, *self.args).apply(*self.tactics)

    @cached_property
    def compiled(self) -> Callable[..., Tree]:
        return self.plan.compile()

    @cached_property
    def placed(self) -> Sequence[Tree]:
        """The arguments where the plan wants them."""
        return jax.device_put(self.args, self.shardings[0])

    @cached_property
    def shardings(self) -> tuple[Tree, Tree]:
        """The shardings of the arguments and of the results, in their trees."""
        compiled: Any = self.compiled
        leaves, tree = jax.tree.flatten(self.args)
        given = jax.tree.unflatten(tree, map(on_auto_axes, compiled.in_shardings[: len(leaves)]))
        results = jax.tree.structure(jax.eval_shape(self.function, *self.args))
        return given, jax.tree.unflatten(results, map(on_auto_axes, compiled.out_shardings))

    @cached_property
    def peer(self) -> Any:
        """The same function, compiled by `jax.jit` for these shardings."""
        given, wanted = self.shardings
        return jax.jit(self.function, in_shardings=given, out_shardings=wanted).lower(*self.args).compile()

    def by_hand(self, local: Callable[..., Tree]) -> Any:
        """A function of one device's blocks, in a `shard_map` with these shardings."""
        given, wanted = self.shardings
        ins, outs = (jax.tree.map(lambda each: each.spec, tree) for tree in (tuple(given), wanted))
        mesh = jax.tree.leaves(wanted)[0].mesh
        mapped = jax.shard_map(local, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)
        return jax.jit(mapped, in_shardings=tuple(given))

    def row(self) -> list[str | int]:
        """The collectives and bytes of both, after a check that both compute what the function does."""
        expected = jax.jit(self.function)(*self.args)
        for step in (self.compiled, self.peer):
            jax.tree.map(agree, step(*self.placed), expected)
        (ours, bytes_ours), (theirs, bytes_theirs) = self.counted(self.compiled), self.counted(self.peer)
        assert bytes_ours == self.plan.bytes_per_device(), self.name
        return [self.name, ours, theirs, bytes_ours, bytes_theirs]

    def largest(self) -> tuple[int, int]:
        """The bytes of the largest array that a device holds, in what XLA compiles for Partita and for `jax.jit`."""
        compiled: Any = self.compiled
        return hlo.largest(compiled.lower(*self.placed).compile().as_text()), hlo.largest(self.peer.as_text())

    def counted(self, step: Step) -> tuple[str, int]:
        """The collectives of a call and the bytes that a device receives: by the jaxpr, or by what XLA compiled."""
        if step is self.peer:
            compiled = hlo.collectives(self.peer.as_text())
            return listed(hlo.counts(compiled)), hlo.received(compiled)
        found = jaxpr_collectives.collectives(step, *self.placed)
        return listed(jaxpr_collectives.counts(found)), jaxpr_collectives.received(found)


def on_auto_axes(sharding: NamedSharding) -> NamedSharding:
    """The same sharding on a mesh whose axes are Auto, so that `jax.jit` is free inside."""
    mesh = sharding.mesh
    return NamedSharding(Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * mesh.devices.ndim), sharding.spec)


def agree(got: jax.Array, expected: jax.Array) -> None:
    """Checks that two results are equal up to rounding."""
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-4, atol=2e-4)


def listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{times:,} {kind}" for kind, times in sorted(counts.items()) if times) or "none"


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds of each call: on the clock, and of all processors together, which other processes disturb less."""

    wall: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])


def in_turn(steps: Mapping[str, Step], args: Sequence[Tree], rounds: int) -> dict[str, Times]:
    """A call of each in turn, so that the load of the machine affects all of them; each is as often first as last."""
    times = {name: Times() for name in steps}
    for turn in range(rounds):
        for name in [*steps, *steps][turn % len(steps) :][: len(steps)]:
            start, busy = perf_counter(), process_time()
            jax.block_until_ready(steps[name](*args))
            times[name].wall.append(perf_counter() - start)
            times[name].cpu.append(process_time() - busy)
    return times


def timed(name: str, title: str, case: Case, by_hand: Step | None, rounds: int) -> Table:
    """The time of a step and the collectives, of the plan and its peers, which run in turn in one sitting."""
    peers: dict[str, Step] = {"jit": case.peer} | ({"shard_map": by_hand} if by_hand is not None else {})
    steps: dict[str, Step] = {"partita": case.compiled, **peers}
    expected = jax.jit(case.function)(*case.args)
    for step in steps.values():
        jax.tree.map(agree, step(*case.placed), expected)
    times = in_turn(steps, case.placed, rounds)
    middle = {each: median(them.wall) for each, them in times.items()}
    found = {each: case.counted(step) for each, step in steps.items()}
    best = min(middle[each] for each in peers)
    columns = ["", "collectives", "bytes received", "median, ms", "best, ms", "median / better peer"]
    rows = [[each, *found[each], 1000 * middle[each], 1000 * min(times[each].wall), middle[each] / best] for each in steps]
    notes = [f"One call of each in turn, {rounds} times, each first as often as last.", machine()]
    return Table(name, title, columns, rows, notes)
