"""Generated cases from a seed, the same at each commit: hypothesis itself would draw constants of the project's sources.

seeded(7)   -->   a program, a mesh and tactics; of ten cases in a row, six are forward, two gradients, and two have constraints
"""

from random import Random
from typing import Any

from generated import Case, cases
from generated_constraints import constrained_cases
from hypothesis import strategies as st
from hypothesis.control import BuildContext
from hypothesis.errors import StopTest, UnsatisfiedAssumption
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.providers import PrimitiveProvider

TRIES = 100
KINDS: list[st.SearchStrategy[Any]] = [*[cases()] * 6, *[cases(True)] * 2, constrained_cases(), constrained_cases(True)]


class Drawn(PrimitiveProvider):
    """Draws whole numbers and truths, all that generated cases are made of, from a `Random`."""

    def __init__(self, data: ConjectureData | None, random: Random) -> None:
        super().__init__(data)
        self.random = random

    def draw_boolean(self, p: float = 0.5) -> bool:
        return self.random.random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        assert min_value is not None and max_value is not None
        return self.random.randint(min_value, max_value)

    def draw_float(self, **_: Any) -> float:
        raise NotImplementedError

    def draw_string(self, *_: Any, **more: Any) -> str:
        raise NotImplementedError

    def draw_bytes(self, *_: Any, **more: Any) -> bytes:
        raise NotImplementedError


def seeded(seed: int) -> Case:
    """The case of this seed. A drawing that hypothesis gives up is begun again."""
    random = Random(seed)
    for _ in range(TRIES):
        try:
            data = ConjectureData(random=random, provider=Drawn, provider_kw={"random": random})
            with BuildContext(data, wrapped_test=seeded):
                return data.draw(KINDS[seed % len(KINDS)])
        except (StopTest, UnsatisfiedAssumption):
            continue
    raise RuntimeError(f"no case in {TRIES} drawings of seed {seed}")
