"""Networks as the users of Flax and Equinox write them: each way to partition them computes what the program computes alone.

The counts are derived, not copied: what each tensor costs is said beside the number.
"""

# JAX and the libraries of models annotate their functions only in part.
# pyright: basic

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import pytest

import partita as pt
from partita.compiler.plan import Plan
from partita.examples import equinox_mixer, flax_transformer

MESH = pt.Mesh(data=4, model=2)
BOUND = 2e-4


@dataclass(frozen=True, slots=True)
class Program:
    """A step, its arguments, and ways to partition it, each with its collectives."""

    main: Callable[[], None]
    step: Callable[..., Any]
    args: tuple[Any, ...]
    ways: Mapping[str, Sequence[Any]]
    counts: dict[str, dict[str, int]]

    def plan(self, way: str) -> Plan:
        return pt.plan(self.step, MESH, *self.args).apply(*self.ways[way])


@cache
def transformer() -> Program:
    """P = 12L + 6 parameters: in a block two norms of two, four attention kernels, two dense layers of two; outside of them
    the embedding, the positions, the last norm and the head."""
    layers = 2
    args = flax_transformer.create_state(layers=layers), flax_transformer.random_batch()
    p = 12 * layers + 6
    # The gradient of the input of a layer needs its kernel again, and that of a norm its scale; the embedding is the first.
    again = 6 * layers + 1 + (2 * layers + 1)
    # The bias of `up` lies on `model`, which leaves ZeRO no dim of it.
    kept = layers
    counts = {
        # One sum for each parameter's gradient, and one for the loss.
        "data": {"all_reduce": p + 1},
        # Megatron sums behind attention and behind the dense layers, and their gradients before them.
        "heads": {"all_reduce": p + 1 + 4 * layers},
        "zero": {
            "all_gather": p - kept + again,
            "all_reduce": 1 + 4 * layers + kept,
            "reduce_scatter": p - kept,
        },
    }
    return Program(flax_transformer.main, flax_transformer.train_step, args, flax_transformer.WAYS, counts)


@cache
def mixer() -> Program:
    """P = 12L + 4 parameters: in a block two perceptrons of two layers of two, and two norms of two; the embedding and the
    head have two each."""
    blocks = 2
    step, args = equinox_mixer.create(blocks)
    p = 12 * blocks + 4
    # The weights of the perceptrons, the scales of the norms, the head: all but the embedding have an input with a gradient.
    again = 4 * blocks + 2 * blocks + 1
    counts = {
        "data": {"all_reduce": p + 1},
        # Two perceptrons a block, each summed once forward and once backward.
        "hidden": {"all_reduce": p + 1 + 4 * blocks},
        "zero": {"all_gather": p + again, "all_reduce": 1, "reduce_scatter": p},
    }
    return Program(equinox_mixer.main, step, args, equinox_mixer.WAYS, counts)


PROGRAMS = {each.__name__: each for each in (transformer, mixer)}
WAYS = [
    (program, way)
    for program, module in {"transformer": flax_transformer, "mixer": equinox_mixer}.items()
    for way in module.WAYS
]


@pytest.fixture(autouse=True)
def quick_compiles() -> Iterator[None]:
    """XLA takes seconds to optimise what runs for milliseconds here."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_network_sends_what_its_parameters_say(name: str, way: str) -> None:
    program = PROGRAMS[name]()
    plan = program.plan(way)
    assert {kind: number for kind, number in plan.counts().items() if number} == program.counts[way]
    assert (plan.whole, plan.conflicts, plan.blocked) == ([], [], [])


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_partitioned_training_step_is_the_step(name: str, way: str) -> None:
    program = PROGRAMS[name]()
    assert program.plan(way).check(*program.args) < BOUND


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_trains_as_the_unpartitioned_program(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = PROGRAMS[name]()
    program.main()
    said = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines() if line.startswith("loss ")]
    assert said == pytest.approx(losses(program), rel=BOUND)


def losses(program: Program) -> list[float]:
    """Those of two steps, on one device: a step returns what it takes first, and the loss."""
    args, found = program.args, list[float]()
    for _ in range(2):
        *changed, loss = jax.jit(program.step)(*args)
        args = (*changed, *args[len(changed) :])
        found.append(float(loss))
    return found
