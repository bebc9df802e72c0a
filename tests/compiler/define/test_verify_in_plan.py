"""A definition is tried on blocks as small as a plan's: kernels with steps of two rows, on devices with few rows each."""

# pyright: basic

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import partita as pt

Array = Any


def _normalise(x: Any, out: Any) -> None:
    out[...] = x[...] / x[...].sum(-1, keepdims=True)


def in_steps(x: Array, size: int = 2) -> Array:
    """Rows normalised by a kernel that takes `size` of them in a step."""
    rows = pl.BlockSpec((size, x.shape[1]), lambda i: (i, 0))
    grid = (x.shape[0] // size,)
    return pl.pallas_call(_normalise, jax.typeof(x), grid=grid, in_specs=[rows], out_specs=rows, interpret=True)(x)


def counted(x: Array) -> Array:
    """The sum of the normalised rows."""
    return in_steps(x).sum(0)


one = pt.define("norm_in_twos(x)   out[i, j:] = @(x[i, j:])", lambda x: in_steps(x))
many = pt.define("norms_in_twos(x)   out[i.., j:] = @(x[i.., j:])", lambda x: in_steps(x))
folded = pt.define("sum_in_twos(x)   out[j:] = sum(i) @(x[i, j:])", counted)
large = pt.define("norm_in_64s(x)   out[i, j:] = @(x[i, j:])", lambda x: in_steps(x, 64))
pairs = pt.define("norm_in_pairs(x)   out[(i b), j:] = @(x[(i b), j:])   size b = 2", lambda x: in_steps(x))
sums = pt.define("sum_in_pairs(x)   out[j:] = sum(i, b) @(x[(i b), j:])   size b = 2", counted)

# The op, rows, devices; the size of a block that is refused, or 0.
CUT = [
    (one, 8, 8, 1),
    (one, 8, 4, 0),
    (one, 24, 8, 3),
    (one, 24, 4, 0),
    (many, 8, 8, 1),
    (folded, 8, 8, 1),
    (folded, 16, 8, 0),
    (large, 256, 8, 32),
    (large, 512, 8, 0),
    (large, 768, 8, 96),
    (large, 1536, 8, 0),
    (pairs, 16, 8, 0),
    (pairs, 48, 8, 0),
    (sums, 16, 8, 0),
]


def positive(rows: int) -> Array:
    return np.random.default_rng(0).uniform(0.5, 1.5, (rows, 4)).astype("float32")


@pytest.mark.parametrize(("op", "rows", "devices", "refused"), CUT, ids=str)
def test_blocks_that_are_too_small_are_refused_before_they_are_run(op: Any, rows: int, devices: int, refused: int):
    x = positive(rows)
    plan = pt.plan(lambda x: op(x), pt.Mesh(a=devices), x).tile("x", 0, "a")
    if not refused:
        assert plan.check(x) < 1e-4
        return
    for lowered in (plan.spmd, plan.compile, plan.ir, plan.lower):
        with pytest.raises(pt.Error, match=rf"cannot be cut into blocks of {refused}(?!\d)"):
            lowered()


def test_the_suggested_definition_is_right():
    with pytest.raises(pt.Error) as caught:
        pt.plan(lambda x: folded(x), pt.Mesh(a=8), positive(8)).tile("x", 0, "a").spmd()
    offered = next(each for each in caught.value.helps if "size" in each).split("`")[1]
    assert offered == "out[j:] = sum(i, b) @(x[(i b), j:])  size b = 2"
    right = pt.define(f"sum_as_offered(x)   {offered}", counted)
    assert pt.plan(lambda x: right(x), pt.Mesh(a=8), positive(16)).tile("x", 0, "a").check(positive(16)) < 1e-4


def test_the_op_that_vmap_makes_is_tried_too():
    wrong = pt.define("softmax_anywhere(x)   out[i, j] = @(x[i, j])", lambda x: jax.nn.softmax(x, -1))
    with pytest.raises(pt.Error, match="`j` cannot be placed"):
        pt.plan(jax.vmap(wrong), pt.Mesh(a=8), jnp.ones((4, 8, 16)))
    with pytest.raises(pt.Error, match="`i` cannot be cut into blocks of 1"):
        pt.plan(jax.vmap(one), pt.Mesh(a=8), jnp.ones((4, 8, 16))).tile("x", 1, "a").spmd()
    x = np.stack([positive(8), positive(8)])
    assert pt.plan(jax.vmap(one), pt.Mesh(a=4), x).tile("x", 1, "a").check(x) < 1e-4


def test_a_call_without_steps_does_not_count_as_a_trial():
    """Arrays of 8 rows are shorter than a step of 64: the kernel writes nothing, on whole arrays and in blocks."""
    total = pt.define("ones_in_64s(x)   out[i, j:] = @(x[i, j:])", lambda x: in_steps(x.astype("float32"), 64).astype("int32"))
    plan = pt.plan(lambda x: total(x), pt.Mesh(a=8), np.ones((256, 4), np.int32)).tile("x", 0, "a")
    with pytest.raises(pt.Error, match="blocks of 32"):
        plan.spmd()
