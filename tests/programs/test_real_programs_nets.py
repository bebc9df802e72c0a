"""Networks as the users of Flax and Equinox write them: partitioned in each way, they compute what the program computes.

The counts are derived, not copied: the cost of each tensor is explained beside the number.
"""

# JAX and the libraries of models annotate their functions only in part.
# pyright: basic

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import pytest

import partita as pt
from partita.compiler.api.plan import Plan
from partita.examples import equinox_mixer, flax_transformer, resnet, sampler, unet

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
        # Megatron sums after attention and after the dense layers, and their gradients before them.
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


@cache
def residual() -> Program:
    """P = 20 parameters: K = 6 kernels, N = 6 norms of two, and the head's two. A norm's statistics are those of the whole
    batch, so they are summed over it: two vectors on the way there, and on the way back the gradient of the mean (that of the
    variance is the scale's own, but for a factor)."""
    kernels, norms = 6, 6
    p = kernels + 2 * norms + 2
    counts = {
        "data": {"all_reduce": p + 1 + 3 * norms},
        # The channels between the two convolutions of a block: a sum after the second, and one of the gradient of the first.
        "channels": {"all_reduce": p + 1 + 3 * norms + 2 * 2},
        "zero": {
            # A norm's vectors lie as its scale does, apart: mean, factor and bias are gathered to be applied to the image, and
            # the two gradients of its statistics. The first convolution's input, an image, needs no gradient.
            "all_gather": kernels + 2 + (kernels - 1) + 1 + (3 + 2) * norms,
            "all_reduce": 1,
            "reduce_scatter": p + 3 * norms,
        },
    }
    args = resnet.create_state(stages=2), resnet.random_batch()
    return Program(resnet.main, resnet.train_step, args, resnet.WAYS, counts)


# What the U-Net has: 9 convolutions and 3 dense layers with a bias, 6 group norms of two, 4 attention kernels.
CONVOLUTIONS, DENSE, NORMS, ATTENTION, RESIDUAL = 9, 3, 6, 4, 2
UNET_PARAMETERS = 2 * (CONVOLUTIONS + DENSE + NORMS) + ATTENTION


@cache
def denoiser() -> Program:
    """P = 40 parameters. Group norms normalise each image alone, so a batch in parts needs no sums for them."""
    p = UNET_PARAMETERS
    # All kernels and scales except those of the first convolution and the first dense layer, whose inputs are data.
    again = (CONVOLUTIONS - 1) + (DENSE - 1) + NORMS + ATTENTION
    counts = {
        "data": {"all_reduce": p + 1},
        # In and out of attention, and of the channels between the two convolutions of a residual block, groups of which are
        # normalised apart; the gradient of the time's embedding, which all residual blocks add to before it is summed.
        "heads and channels": {"all_reduce": p + 1 + 2 + 2 * RESIDUAL + 1},
        # The last bias has three elements, which do not divide over four devices.
        "zero": {"all_gather": p - 1 + again, "all_reduce": 1 + 1, "reduce_scatter": p - 1},
    }
    args = unet.create_state(), unet.random_images(), jax.random.key(2)
    return Program(unet.main, unet.train_step, args, unet.WAYS, counts)


PROGRAMS = {each.__name__: each for each in (transformer, mixer, residual, denoiser)}
MODULES = {"transformer": flax_transformer, "mixer": equinox_mixer, "residual": resnet, "denoiser": unet}
WAYS = [(program, way) for program, module in MODULES.items() for way in module.WAYS]


@cache
def traced(name: str) -> Plan:
    """The step of a program, before any tactic."""
    return pt.plan(PROGRAMS[name]().step, MESH, *PROGRAMS[name]().args)


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_network_has_the_collectives_that_its_parameters_predict(name: str, way: str) -> None:
    program = PROGRAMS[name]()
    plan = traced(name).apply(*program.ways[way])
    assert {kind: number for kind, number in plan.counts().items() if number} == program.counts[way]
    assert (plan.whole, plan.conflicts, plan.blocked) == ([], [], [])


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_partitioned_training_step_is_the_step(name: str, way: str) -> None:
    program = PROGRAMS[name]()
    assert traced(name).apply(*program.ways[way]).check(*program.args) < BOUND


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_trains_as_the_unpartitioned_program(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = PROGRAMS[name]()
    program.main()
    said = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines() if line.startswith("loss ")]
    assert said == pytest.approx(losses(program), rel=BOUND)


def losses(program: Program) -> list[float]:
    """The losses of two steps on one device: a step returns its new first argument, and the loss."""
    args, found = program.args, list[float]()
    for _ in range(2):
        *changed, loss = jax.jit(program.step)(*args)
        args = (*changed, *args[len(changed) :])
        found.append(float(loss))
    return found


# --- sampling ----------------------------------------------------------------------------------------------------------------

arguments = cache(sampler.arguments)


def guided(params: Any, x: jax.Array) -> Any:
    return jax.value_and_grad(lambda params: (sampler.ddim(params, x)[0] ** 2).mean())(params)


@cache
def sampling(step: Callable[..., Any]) -> tuple[Plan, tuple[Any, ...], int]:
    """A sampler before any tactic, its arguments, and how often it runs the model."""
    args = (*arguments(), jax.random.key(2)) if step is sampler.ddpm else arguments()
    return pt.plan(step, MESH, *args), args, unet.STEPS if step is sampler.ddpm else unet.STEPS // 2


@pytest.mark.parametrize(("name", "way"), [*(("ddpm", way) for way in sampler.WAYS), ("ddim", "heads and channels")])
def test_a_sampler_has_the_collectives_of_its_model_in_every_step(name: str, way: str) -> None:
    start, args, trips = sampling(getattr(sampler, name))
    plan = start.apply(*sampler.WAYS[way])
    forward = {"data": {}, "heads and channels": {"all_reduce": 1 + RESIDUAL}, "zero": {"all_gather": UNET_PARAMETERS - 1}}
    counts = {kind: number for kind, number in plan.counts().items() if number}
    # What is the same in all steps, the parameters, is gathered before the loop.
    assert counts == {kind: number * (1 if way == "zero" else trips) for kind, number in forward[way].items()}
    assert (plan.whole, plan.conflicts, plan.blocked) == ([], [], [])
    assert plan.check(*args) < BOUND


@pytest.mark.parametrize(("way", "megatron"), [("data", 0), ("heads and channels", (1 + RESIDUAL) + (1 + RESIDUAL))])
def test_a_gradient_goes_through_a_sampler(way: str, megatron: int) -> None:
    """Megatron's sums run in each trip. The sums of each parameter's gradient and of the loss run once after the loop.

    So does the sum that only the gradients of the time's projection read: these are sums over the batch, and over both axes.
    """
    start, args, trips = sampling(guided)
    plan = start.apply(*sampler.WAYS[way])
    assert plan.counts()["all_reduce"] == 1 + UNET_PARAMETERS + trips * megatron
    assert plan.check(*args) < BOUND


def test_the_sampler_prints_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    sampler.main()
    mean, deviation = map(float, capsys.readouterr().out.split()[-2:])
    alone = jax.jit(sampler.ddpm)(*arguments(), jax.random.key(2))
    assert (mean, deviation) == pytest.approx((float(alone.mean()), float(alone.std())), rel=1e-3)


def test_a_sampler_may_end_when_the_images_are_clean() -> None:
    plan = pt.plan(sampler.until_clean, MESH, *arguments()).apply(*sampler.WAYS["heads and channels"])
    assert plan.check(*arguments()) < BOUND
