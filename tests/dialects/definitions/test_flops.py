"""The arithmetic of an op is counted on its definition: the counts are those that one makes by hand."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from calls import CALLS, Call
from jax import lax

import partita as pt

MESH = pt.Mesh(a=4)
X, W, V = np.ones((8, 16), np.float32), np.ones((16, 4), np.float32), np.ones(16, np.float32)
IMAGE, KERNEL = np.ones((2, 8, 8, 6), np.float32), np.ones((3, 5, 6, 7), np.float32)
IDS = np.arange(3, dtype=np.int32)[:, None]
ROWS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
PUT = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))


def conv(x: Any, w: Any, groups: int = 1) -> Any:
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=dims, feature_group_count=groups)


COUNTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "a sum of two": (lambda x: x + x, (X,), 8 * 16),
    "a broadcast and a product": (lambda x, v: x * v[None], (X, V), 8 * 16),
    "a function": (jnp.exp, (X,), 8 * 16),
    "a matrix product is 2mnk": (lambda x, w: x @ w, (X, W), 2 * 8 * 4 * 16),
    "a batch of them": (lambda x, w: jnp.einsum("bij,bjk->bik", x, w), (np.ones((3, 8, 16)), np.ones((3, 16, 4))), 3 * 1024),
    "an outer product adds nothing": (jnp.outer, (V, V), 16 * 16),
    "a convolution": (conv, (IMAGE, KERNEL), 2 * (2 * 4 * 8 * 7) * (3 * 5 * 6)),
    "in groups": (lambda x, w: conv(x, w, 3), (IMAGE, np.ones((3, 5, 2, 9))), 2 * (2 * 4 * 8 * 9) * (3 * 5 * 2)),
    "a sum over a dim": (lambda x: lax.reduce_sum_p.bind(x, axes=(1,), out_sharding=None), (X,), 8 * 16),
    "a maximum of all": (lambda x: lax.reduce_max_p.bind(x, axes=(0, 1), out_sharding=None), (X,), 8 * 16),
    "a running sum": (lambda x: lax.cumsum(x, 1), (X,), 8 * 16),
    "the largest three": (lambda x: lax.top_k(x, 3), (X,), 8 * 16),
    "a pool": (lambda x: lax.reduce_window(x, np.float32(0), lax.add, (2, 4), (2, 4), "VALID"), (X,), 8 * 16),
    "a transpose": (lambda x: x.T, (X,), 0),
    "a cast": (lambda x: x.astype(jnp.bfloat16), (X,), 0),
    "a choice": (lambda x: lax.select(x > 1, x, x), (X,), 8 * 16),
    "rows looked up": (lambda x: lax.gather(x, IDS, ROWS, (1, 16), mode="clip"), (X,), 0),
    "rows added": (lambda x: lax.scatter_add(x, IDS, np.ones((3, 16), np.float32), PUT), (X,), 8 * 16 + 3 * 16),
    "rows replaced": (lambda x: lax.scatter(x, IDS, np.ones((3, 16), np.float32), PUT), (X,), 0),
    "a loop counts by its trips": (lambda x: lax.scan(lambda c, r: (c + r * r, None), V, x)[0], (X,), 8 * 2 * 16),
    "a loop of unknown trips once": (lambda x: lax.while_loop(lambda v: v[0, 0] < 9, lambda v: v * 2, x), (X,), 8 * 16 + 1),
    "the branch with the most": (lambda x: lax.cond(x[0, 0] > 1, lambda: x + x * x, lambda: x + 1), (X,), 2 * 8 * 16 + 1),
}


@pytest.mark.parametrize("what", COUNTS)
def test_flops_are_those_counted_by_hand(what: str) -> None:
    function, args, count = COUNTS[what]
    flops = pt.plan(function, MESH, *args).flops_per_device()
    assert (flops.known, flops.unknown) == (count, ())


UNKNOWN: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: lax.sort(x, dimension=0),
    "cholesky": lambda x: lax.linalg.cholesky(x[:, :8], symmetrize_input=False),
    "fft": lambda x: jnp.fft.fft(x),
    "smooth": pt.define("smooth(x)   out[i.., j] = @(x[i.., j])")(lambda x: jnp.tanh(x) * 2),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_a_definition_does_not_say_is_unknown(name: str) -> None:
    flops = pt.plan(UNKNOWN[name], MESH, X).flops_per_device()
    assert flops.unknown == (name,) and str(flops).startswith(
        ("unknown flops", f"{flops.known:,} flops, and those of `{name}`")
    )


def test_the_definition_of_a_users_op_may_say_it() -> None:
    matmul = pt.define("matmul(x, w)   out[i, j] = sum(k) x[i, k] * w[k, j]")(lambda x, w: x @ w)
    assert pt.plan(matmul, MESH, X, W).flops_per_device().known == 2 * 8 * 4 * 16


@pytest.mark.parametrize("dim", (0, 1))
def test_a_device_computes_its_part(dim: int) -> None:
    whole = pt.plan(lambda x, w: jnp.exp(x) @ w, MESH, X, W)
    part = whole.tile("x", dim, "a")
    assert part.flops_per_device().known * 4 == whole.flops_per_device().known == 8 * 16 + 2 * 8 * 4 * 16


def test_padding_is_computed_too() -> None:
    assert pt.plan(jnp.exp, MESH, X[:7]).tile("x", 0, "a", padded=True).flops_per_device().known == 2 * 16


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_device_computes_no_less_than_its_share_and_no_more_than_all(call: Call) -> None:
    whole = pt.plan(call.function, MESH, *call.args)
    total = whole.flops_per_device()
    for name, value in zip(whole.arguments(), whole.source.program.arguments, strict=True):
        for dim in range(len(whole.source.shape(value))):
            with suppress(pt.Error):
                part = whole.tile(name, dim, "a").flops_per_device()
                assert part.known <= total.known <= 4 * part.known and part.unknown == total.unknown
