"""Each way to depart from what claims give is a proposal: without it a program costs more; without all, every one is right."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sent import normal

import partita as pt
from partita.rewrites.decide import decide, price
from partita.rewrites.decide.relocate import Relocated
from tests.support.everywhere import agrees

MESH = pt.Mesh(d=8)


class Row(NamedTuple):
    """A program that some proposal makes cheaper. Without tactics, all its arguments are tiled on dim 0."""

    program: Callable[..., Any]
    args: Sequence[Any]
    tactics: Sequence[pt.Tactic] = ()
    start: float = 0
    """What a collective takes to start. At 0 they save as much in small programs as in large ones."""


def iterated(w: Any, x: Any) -> Any:
    return jax.lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=8)[0]


def causal(s: Any) -> Any:
    """Positions that depend on no argument are read in parts and whole."""
    at = jnp.arange(s.shape[0])
    return jnp.where(at[:, None] >= at[None], s, -1e9)


def factored(a: Any) -> Any:
    return jnp.linalg.cholesky(a), jnp.linalg.cholesky(a.T)


ROWS = {
    "relocated": Row(lambda x: jnp.fft.fft(x, axis=0).real, [normal(64, 32)]),
    "gather_before_loops": Row(
        iterated, [normal(16, 16), normal(64, 16)], [pt.Tile({"x": 0}, "d"), pt.Tile({"w": 0}, "d")], price.START
    ),
    "compute_constants_whole": Row(causal, [normal(64, 64)], start=price.START),
    "carried_sums": Row(lambda x, y: x.T @ x + y.T @ y, [normal(64, 8), normal(64, 8)], start=price.START),
    "gather_at_source": Row(factored, [np.eye(16, dtype=np.float32) * 3 + 1], start=price.START),
    "sort_gathered": Row(jnp.sort, [normal(256)], [pt.Replicate("result", "d"), pt.Tile({"a": 0}, "d")], price.START),
    "_splits": Row(lambda x: x.reshape(2, 4, 128) * 2, [normal(8, 128)]),
}
"""By the name of the proposal in `decide.py`."""


NOTHING: dict[str, Any] = {
    "relocated": lambda placements, carried, *_: Relocated(placements, carried, {}),
    "carried_sums": lambda *_: ({}, []),
    "_splits": lambda *_: [],
}
"""What functions that are no `PROPOSALS` return if they find nothing."""


def without(names: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes proposals away: each then proposes nothing."""
    monkeypatch.setattr(decide, "PROPOSALS", [each for each in decide.PROPOSALS if each.__name__ not in names])
    for name in NOTHING.keys() & names:
        monkeypatch.setattr(decide, name, lambda *args, nothing=NOTHING[name]: nothing(*args))


def planned(row: Row) -> pt.Plan:
    plan = pt.plan(row.program, MESH, *row.args)
    names = [name for name in plan.layout() if not name.startswith("result")]
    return plan.apply(*(row.tactics or (pt.Tile({name: 0}, "d") for name in names)))


@pytest.mark.parametrize("name", ROWS)
def test_a_program_costs_more_without_a_proposal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "START", ROWS[name].start)
    best = planned(ROWS[name]).bytes_per_device()
    without([name], monkeypatch)
    assert planned(ROWS[name]).bytes_per_device() > best


@pytest.mark.parametrize("name", ROWS)
def test_every_program_is_right_without_any(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without([*ROWS], monkeypatch)
    agrees(planned(ROWS[name]), ROWS[name].program, *ROWS[name].args)
