"""Models in index notation: each plan has the collectives given here, and computes the same."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.run.trial_run import errors, input_leaves

PROGRAMS = Path(__file__).parent / "programs"
COUNTS: dict[tuple[str, str | None], dict[str, int]] = {
    ("accuracy", None): {"all_reduce": 1},
    ("conv_net", "batch"): {},
    ("conv_net", "channels"): {"all_reduce": 1},
    ("decode_step", "heads"): {},
    ("depthwise", "batch"): {},
    ("experts", "experts"): {"all_reduce": 1},
    ("local_attention", "batch"): {},
    ("lstm", "batch"): {},
    ("lstm", "single"): {"all_gather": 1},
    ("message_passing", "edges"): {"all_reduce": 1},
}


@pytest.mark.parametrize(("name", "plan"), COUNTS, ids=str)
def test_a_program_computes_the_same_by_every_plan(name: str, plan: str | None):
    made = pt.load(PROGRAMS / f"{name}.partita").plan(plan)
    assert {kind: count for kind, count in made.counts().items() if count} == COUNTS[name, plan]
    assert not made.whole
    assert not made.conflicts
    assert max(errors(made, input_leaves(made, (), seed=0)).values()) <= 1e-2


def test_every_plan_of_the_programs_is_tried():
    plans = {(path.stem, plan) for path in PROGRAMS.glob("*.partita") for plan in pt.load(path).plans or (None,)}
    assert plans == set(COUNTS)


LOSS = """
mesh data=4, model=2
let D=8, F=16

fn forward(x: f32[B=16, D], w1: f32[D, F], w2: f32[F, D]) -> f32[B, D] {
  h[b, f] = silu(sum(d) x[b, d] * w1[d, f])
  y[b, d] = sum(f) h[b, f] * w2[f, d]
  return y
}

fn loss(w1: f32[D, F], w2: f32[F, D], x: f32[B=16, D], target: f32[B, D]) -> f32[] {
  y = forward(x, w1, w2)
  error = sum(b, d) square(y[b, d] - target[b, d]) / (B * D)
  return error
}
"""


def theirs(w1: Any, w2: Any, x: Any, target: Any) -> Any:
    return jnp.mean(jnp.square(jax.nn.silu(x @ w1) @ w2 - target))


def arrays() -> tuple[Any, ...]:
    random = np.random.default_rng(0)
    return tuple(random.normal(size=shape).astype("float32") * 0.3 for shape in ((8, 16), (16, 8), (16, 8), (16, 8)))


def test_a_training_step_around_a_program_is_partitioned():
    program = pt.parse(LOSS)

    def step(params: Any, x: Any, target: Any) -> Any:
        value, grads = jax.value_and_grad(program.functions["loss"], (0, 1))(*params, x, target)
        return jax.tree.map(lambda w, g: w - 0.1 * g, params, grads), value

    w1, w2, x, target = arrays()
    plan = pt.plan(step, pt.Mesh(data=4, model=2), (w1, w2), x, target).tile("x", 0, "data").tile("params/0", 1, "model")
    plan.expect(all_reduce=4)
    assert plan.check((w1, w2), x, target) < 2e-4
    (ours, _), _ = plan.compile()((w1, w2), x, target)
    np.testing.assert_allclose(ours, w1 - 0.1 * jax.grad(theirs)(w1, w2, x, target), rtol=1e-4, atol=1e-6)


def test_a_program_goes_into_loops_and_under_vmap():
    loss = pt.parse(LOSS).functions["loss"]
    w1, w2, x, target = arrays()

    def losses(function: Any) -> Any:
        def trip(w: Any, _: Any) -> Any:
            return w - 0.1 * jax.grad(function)(w, w2, x, target), function(w, w2, x, target)

        return jax.lax.scan(trip, w1, None, 3)[1], jax.vmap(function, (0, None, None, None))(
            jnp.stack((w1, -w1)), w2, x, target
        )

    for ours, wanted in zip(losses(loss), losses(theirs), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-5)
