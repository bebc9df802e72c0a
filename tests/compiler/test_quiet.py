"""A pipeline runs without the cyclic collector; its objects then belong to the oldest generation, but can be freed."""

import gc
import weakref
from collections.abc import Generator

import pytest

from partita.compiler import gc_pause as quiet
from partita.compiler.gc_pause import without_collector

MANY = quiet.LARGE + 100
"""New objects, some more than are freed meanwhile."""


class Knot:
    """An object that only the cyclic collector frees."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True, scope="module")
def nothing_frozen() -> Generator[None, None, None]:
    """The set-up of the tests freezes what earlier files have left."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.fixture(autouse=True)
def young_walked(monkeypatch: pytest.MonkeyPatch) -> Generator[None, None, None]:
    """Only new objects count here. A walk of all objects of the tests that ran before takes seconds."""
    monkeypatch.setattr(quiet, "_has_frozen", False)
    gc.collect(0)
    yield
    gc.collect(0)


def test_the_collector_rests_and_is_on_again():
    with without_collector():
        assert not gc.isenabled()
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with without_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_objects_of_a_large_pipeline_are_not_walked_next():
    with without_collector():
        kept = [Knot() for _ in range(MANY)]
    assert gc.get_count()[0] < 1000
    assert len(kept) == MANY


def knots_freed(pipelines: int) -> bool:
    """Whether what the first of so many pipelines made is freed."""
    first: list[weakref.ref[Knot]] = []
    for _ in range(pipelines):
        with without_collector():
            made = [Knot() for _ in range(MANY)]
        first = first or [weakref.ref(made[0])]
        del made
    return first[0]() is None


@pytest.mark.parametrize(("alive", "pipelines"), [(0, 4), (5 * MANY, 6)])
def test_the_objects_of_a_pipeline_are_freed_later_the_later_the_more_are_alive(
    alive: int, pipelines: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(quiet, "MOST_UNWALKED", 3 * MANY)
    monkeypatch.setattr(quiet, "_unwalked", 0)
    monkeypatch.setattr(quiet, "_alive", alive)
    assert knots_freed(pipelines)
    monkeypatch.setattr(quiet, "_unwalked", 0)
    monkeypatch.setattr(quiet, "_alive", alive)
    assert not knots_freed(pipelines - 2)


def test_what_the_user_froze_stays_frozen(monkeypatch: pytest.MonkeyPatch):
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with without_collector():
            kept = [Knot() for _ in range(MANY)]
        assert gc.get_freeze_count() >= frozen > 0
        assert len(kept) == MANY
        # They are not counted before each pipeline: that would walk all of them.
        monkeypatch.setattr(gc, "get_freeze_count", None)
        with without_collector():
            kept = [Knot() for _ in range(MANY)]
        assert len(kept) == MANY
    finally:
        gc.unfreeze()
