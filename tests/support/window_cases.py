"""Programs that read arrays through windows: what each of them sends over 8 devices, and how to compare its results."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from agreement import disagreement
from jax import lax
from lowered import interpreted

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=8)
F32, BF16 = np.dtype(np.float32), np.dtype(jnp.bfloat16)
ROWS = (64, 4)
SEQUENCE = (2, 64, 4)
KERNEL = (3, 4, 4)
IMAGE = (2, 64, 8, 3)

Function = Callable[..., Any]


def conv(x: Any, w: Any, pads: str | Sequence[tuple[int, int]] = "SAME", *, stride: int = 1, **more: Any) -> Any:
    return lax.conv_general_dilated(x, w, (stride,), pads, dimension_numbers=("NWC", "WIO", "NWC"), **more)


def conv_2d(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def two_convs(x: Any, v: Any, w: Any) -> Any:
    return conv(pt.tag(conv(x, v), "h1"), w)


def pool(fold: str, width: int, stride: int, pads: str = "SAME") -> Function:
    function, unit = {"max": (lax.max, -np.inf), "add": (lax.add, 0)}[fold]

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, np.asarray(unit, x.dtype), function, (1, width, width, 1), (1, stride, stride, 1), pads)

    return pooled


def stencil(x: Any) -> Any:
    """Eight steps of three points, with zeros around."""
    for step in range(8):
        x = pt.tag(x, f"h{step}")
        around = jnp.pad(x, ((1, 1), (0, 0)))
        x = (around[2:] + around[:-2] - x) / 2
    return x


def neighbours(x: Any) -> Any:
    """The sum of the rows before and after each row that has both."""
    return x[2:] + x[:-2]


def convolved(x: Any, kernel: Any) -> Any:
    """Two steps by `jnp.convolve` of every column, between which elements only move."""
    for step in range(2):
        x = jax.vmap(lambda column: jnp.convolve(column, kernel, "same"), 1, 1)(pt.tag(x, f"h{step}"))
    return x


@dataclass(frozen=True)
class Case:
    """A function of arrays of these shapes, the first of them on `data`; what it sends forward, and in its gradient."""

    function: Function
    shapes: tuple[tuple[int, ...], ...]
    dim: int
    forward: dict[str, int]
    bytes: int
    backward: dict[str, int] | None = None
    backward_bytes: int = 0
    padded: bool = False
    widen: str = ""


def permutes(number: int, **others: int) -> dict[str, int]:
    return {**({"permute": number} if number else {}), **others}


CASES: dict[str, Case] = {
    "conv of three rows": Case(conv, (SEQUENCE, KERNEL), 1, permutes(2), 64, permutes(4, all_reduce=1), 464),
    "conv with stride 2": Case(
        lambda x, w: conv(x, w, stride=2), (SEQUENCE, KERNEL), 1, permutes(1), 32, permutes(2, all_reduce=1), 400
    ),
    "conv with dilation 2": Case(
        lambda x, w: conv(x, w, rhs_dilation=(2,)), (SEQUENCE, KERNEL), 1, permutes(2), 128, permutes(4, all_reduce=1), 592
    ),
    "conv with base dilation 2": Case(
        lambda x, w: conv(x, w, [(1, 2)], lhs_dilation=(2,)),
        (SEQUENCE, KERNEL),
        1,
        permutes(1),
        32,
        permutes(2, all_reduce=1),
        400,
    ),
    "transposed conv": Case(
        lambda x, w: lax.conv_transpose(x, w, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        (SEQUENCE, KERNEL),
        1,
        permutes(1),
        32,
        permutes(2, all_reduce=1),
        400,
    ),
    "grouped conv on the batch": Case(
        lambda x, w: conv(x, w, feature_group_count=2),
        ((8, 64, 4), (3, 2, 4)),
        0,
        permutes(0),
        0,
        permutes(0, all_reduce=1),
        168,
    ),
    "grouped conv in space": Case(
        lambda x, w: conv(x, w, feature_group_count=2),
        (SEQUENCE, (3, 2, 4)),
        1,
        permutes(2),
        64,
        permutes(4, all_reduce=1),
        296,
    ),
    "conv of groups of the batch": Case(
        lambda x, w: conv(x, w, batch_group_count=2), (SEQUENCE, KERNEL), 1, permutes(2), 64, permutes(4, all_reduce=1), 432
    ),
    "conv without padding, summed": Case(
        lambda x, w: conv(x, w, "VALID").sum(1),
        (SEQUENCE, KERNEL),
        1,
        permutes(2, all_reduce=1),
        120,
        permutes(4, all_reduce=2),
        520,
        padded=True,
    ),
    "conv of which fewer rows are left, summed": Case(
        lambda x, w: conv(x, w, "VALID").sum(1),
        (SEQUENCE, KERNEL),
        1,
        permutes(2, all_reduce=1),
        120,
        permutes(4, all_reduce=2),
        520,
    ),
    "conv of which fewer rows are left, with stride 2": Case(
        lambda x, w: conv(x, w, "VALID", stride=2).sum(1),
        (SEQUENCE, KERNEL),
        1,
        permutes(1, all_reduce=1),
        88,
        permutes(2, all_reduce=2),
        456,
    ),
    "two convs of which fewer rows are left, averaged": Case(
        lambda x, v, w: jnp.tanh(conv(jnp.tanh(conv(x, v, "VALID")), w, "VALID")).mean(1),
        (SEQUENCE, KERNEL, KERNEL),
        1,
        permutes(4, all_reduce=1),
        184,
        permutes(8, all_reduce=3),
        984,
    ),
    "two convs of different kernels of which fewer rows are left, averaged": Case(
        lambda x, v, w: jnp.tanh(conv(jnp.tanh(conv(x, v, "VALID")), w, "VALID")).mean(1),
        (SEQUENCE, KERNEL, (4, 4, 4)),
        1,
        permutes(4, all_reduce=1),
        216,
        permutes(8, all_reduce=3),
        1160,
    ),
    "conv of 17 rows, summed": Case(
        lambda x, w: conv(x, w).sum(1),
        ((2, 17, 4), KERNEL),
        1,
        permutes(2, all_reduce=1),
        120,
        permutes(4, all_gather=1, all_reduce=2),
        1192,
        padded=True,
    ),
    "halo of 9 rows, two hops": Case(
        lambda x, w: conv(x, w, rhs_dilation=(9,)), (SEQUENCE, KERNEL), 1, permutes(4), 576, permutes(8, all_reduce=1), 1488
    ),
    "halo of 17 rows, three hops": Case(conv, (SEQUENCE, (35, 4, 4)), 1, permutes(6), 1088, permutes(12, all_reduce=1), 6096),
    "two convs": Case(two_convs, (SEQUENCE, KERNEL, KERNEL), 1, permutes(4), 128, permutes(8, all_reduce=2), 928),
    "two convs, widened": Case(
        two_convs, (SEQUENCE, KERNEL, KERNEL), 1, permutes(2), 128, permutes(6, all_reduce=2), 928, widen="h1"
    ),
    "stencil": Case(stencil, (ROWS,), 0, permutes(16), 256, permutes(32), 768),
    "stencil, widened": Case(stencil, (ROWS,), 0, permutes(2), 256, permutes(18), 768, widen="h[1-7]"),
    "convolutions of columns": Case(convolved, (ROWS, (3,)), 0, permutes(4), 64),
    "convolutions of columns, widened": Case(convolved, (ROWS, (3,)), 0, permutes(2), 64, widen="h1"),
    "roll by 1": Case(lambda x: jnp.roll(x, 1, 0), (ROWS,), 0, permutes(1), 16, permutes(2), 32),
    "roll by 9": Case(lambda x: jnp.roll(x, 9, 0), (ROWS,), 0, permutes(2), 128, permutes(4), 256),
    "every other row": Case(lambda x: x[::2], (ROWS,), 0, permutes(0), 0, permutes(0), 0),
    "every other row from 1": Case(lambda x: x[1::2], (ROWS,), 0, permutes(0), 0, permutes(0), 0),
    "finite difference, squared and summed": Case(
        lambda x: ((x[1:] - x[:-1]) ** 2).sum(0),
        (ROWS,),
        0,
        permutes(1, all_reduce=1),
        44,
        permutes(2, all_reduce=1),
        60,
        padded=True,
    ),
    "second difference, squared and summed": Case(
        lambda x: ((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2).sum(0),
        (ROWS,),
        0,
        permutes(2, all_reduce=1),
        60,
        permutes(4, all_reduce=1),
        92,
        padded=True,
    ),
    "concatenate": Case(lambda x: jnp.concatenate([x, 2 * x]), (ROWS,), 0, permutes(2), 256, permutes(4), 512),
    "pad, squared and summed": Case(
        lambda x: (jnp.pad(x, ((2, 3), (0, 0))) ** 2).sum(0),
        (ROWS,),
        0,
        permutes(2, all_reduce=1),
        108,
        permutes(2, all_reduce=1),
        108,
        padded=True,
    ),
    "split into four": Case(lambda x: jnp.split(x, 4), (ROWS,), 0, permutes(4), 128, permutes(9), 288, padded=True),
    "pool of 2 x 2": Case(pool("max", 2, 2), (IMAGE,), 1, permutes(0), 0),
    "mean pool of 2 x 2": Case(pool("add", 2, 2), (IMAGE,), 1, permutes(0), 0, permutes(0), 0),
    "max pool of 3 x 3": Case(pool("max", 3, 1), (IMAGE,), 1, permutes(2), 384, permutes(6), 1152),
    "max pool of 3 x 3 with stride 2": Case(pool("max", 3, 2), (IMAGE,), 1, permutes(1), 192),
    "mean pool of 3 x 3": Case(pool("add", 3, 1), (IMAGE,), 1, permutes(2), 384, permutes(4), 768),
    "mean pool of 3 x 3 with stride 2": Case(pool("add", 3, 2), (IMAGE,), 1, permutes(1), 192, permutes(2), 288),
    "max pool of 3 x 3 of which fewer rows are left, averaged": Case(
        lambda x: pool("max", 3, 1, "VALID")(x).mean(1), (IMAGE,), 1, permutes(2, all_reduce=1), 636
    ),
    "mean pool of 3 x 3 of which fewer rows are left, averaged": Case(
        lambda x: jnp.tanh(pool("add", 3, 1, "VALID")(x)).mean(1),
        (IMAGE,),
        1,
        permutes(2, all_reduce=1),
        636,
        permutes(4, all_reduce=1),
        924,
    ),
    "max pool of 17 rows, summed": Case(
        lambda x: pool("max", 3, 1)(x).sum(1), ((2, 17, 8, 3),), 1, permutes(2, all_reduce=1), 720, padded=True
    ),
    "differences, squared and averaged, without padding": Case(
        lambda x: ((x[1:] - x[:-1]) ** 2).mean(), (ROWS,), 0, permutes(1, all_reduce=1), 23, permutes(2, all_reduce=1), 39
    ),
    "the largest of differences, without padding": Case(
        lambda x: (x[2:] - x[:-2]).max(0), (ROWS,), 0, permutes(1, all_reduce=1), 60, permutes(2, all_reduce=2), 120
    ),
    "differences, returned": Case(lambda x: x[1:] - x[:-1], (ROWS,), 0, permutes(1, all_gather=1), 912, permutes(2), 32),
    "a product of shifted rows, without padding": Case(
        lambda x: x[1:].T @ x[:-1], (ROWS,), 0, permutes(1, all_reduce=1), 128, permutes(2, all_reduce=1), 144
    ),
    "a softmax of differences, without padding": Case(
        lambda x: jax.nn.softmax(x[1:] - x[:-1], 0).sum(1),
        (ROWS,),
        0,
        permutes(1, all_gather=1, all_reduce=2),
        296,
        permutes(2, all_reduce=3),
        116,
    ),
    "a step of heat between fixed ends": Case(
        lambda x: jnp.pad(x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]), ((1, 1), (0, 0))),
        (ROWS,),
        0,
        permutes(2),
        32,
        permutes(4),
        64,
    ),
    "a step of heat between fixed edges, in two dims": Case(
        lambda x: jnp.pad(x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1], 1),
        (ROWS,),
        0,
        permutes(2),
        40,
        permutes(4),
        56,
    ),
    "differences of differences, largest": Case(
        lambda x: jnp.abs(jnp.diff(x, 2, axis=0)).max(),
        (ROWS,),
        0,
        permutes(2, all_reduce=1),
        39,
        permutes(4, all_reduce=2),
        78,
    ),
    "running sums of differences": Case(
        lambda x: jnp.tanh(jnp.cumsum(x[1:] - x[:-1], 0)).sum(0),
        (ROWS,),
        0,
        permutes(1, all_gather=1, all_reduce=1),
        156,
        permutes(2, all_gather=2, all_reduce=1),
        284,
    ),
    "running products of what is left, from its end": Case(
        lambda x: lax.cumprod(jnp.tanh(x[1:-1]) + 1.5, 0, reverse=True).sum(0),
        (ROWS,),
        0,
        permutes(0, all_gather=1, all_reduce=1),
        140,
    ),
    "differences of running maxima": Case(
        lambda x: jnp.diff(lax.cummax(x[3:-2], 0), axis=0).sum(0),
        (ROWS,),
        0,
        permutes(1, all_gather=1, all_reduce=1),
        156,
    ),
    "all rows but the last, averaged": Case(
        lambda x: jnp.sin(x[:-1]).mean(0), (ROWS,), 0, permutes(0, all_reduce=1), 28, permutes(0, all_reduce=1), 28
    ),
    "some rows, which not all devices have, multiplied": Case(
        lambda x: x[11:44].T @ jnp.sin(x[11:44]),
        (ROWS,),
        0,
        permutes(0, all_reduce=1),
        112,
        permutes(0, all_reduce=1),
        112,
    ),
    "next rows, predicted": Case(
        lambda x: jnp.square(x[1:] - x[:-1] @ (jnp.eye(4) + 1)).mean(),
        (ROWS,),
        0,
        permutes(1, all_reduce=1),
        23,
        permutes(2, all_reduce=1),
        39,
    ),
    "rows weighted by their number": Case(
        lambda x: (x[1:] * jnp.arange(63)[:, None]).sum(0), (ROWS,), 0, permutes(0, all_reduce=1), 28
    ),
    "where differences are largest": Case(lambda x: jnp.argmax(x[1:] - x[:-1], 0), (ROWS,), 0, permutes(2, all_gather=2), 256),
    "the three largest differences": Case(
        lambda x: lax.top_k((x[1:] - x[:-1])[:, 0], 3)[0],
        (ROWS,),
        0,
        permutes(2, all_gather=1),
        104,
        permutes(2, all_gather=2),
        188,
    ),
    "differences, flattened": Case(
        lambda x: jnp.square((x[1:] - x[:-1]).reshape(-1)).mean(),
        (ROWS,),
        0,
        permutes(1, all_reduce=1),
        23,
        permutes(2, all_reduce=1),
        39,
    ),
    "differences of integers, sorted": Case(
        lambda x: jnp.sort(jnp.floor(100 * (x[1:] - x[:-1])).astype(int), 0)[::9].sum(0),
        (ROWS,),
        0,
        permutes(8, all_reduce=1),
        828,
    ),
    "what is left, reversed": Case(
        lambda x: (x[1:][::-1] * x[1:]).sum(0), (ROWS,), 0, permutes(2, all_reduce=1), 156, permutes(4, all_reduce=1), 284
    ),
    "a step around a ring": Case(
        lambda x: neighbours(jnp.pad(x, ((1, 1), (0, 0)), mode="wrap")) - 2 * x,
        (ROWS,),
        0,
        permutes(3),
        48,
        permutes(6),
        128,
    ),
    "a step between free ends": Case(
        lambda x: neighbours(jnp.pad(x, ((1, 1), (0, 0)), mode="edge")) - 2 * x,
        (ROWS,),
        0,
        permutes(2, all_reduce=2),
        88,
        permutes(4, all_reduce=4),
        208,
    ),
    "a step between mirrors": Case(
        lambda x: neighbours(jnp.pad(x, ((1, 1), (0, 0)), mode="reflect")) - 2 * x,
        (ROWS,),
        0,
        permutes(2),
        32,
        permutes(4),
        96,
    ),
    "the largest between free ends": Case(
        lambda x: jnp.tanh(jnp.pad(x, ((1, 1), (0, 0)), mode="edge")).max(0),
        (ROWS,),
        0,
        permutes(2, all_reduce=3),
        116,
        permutes(2, all_reduce=6),
        200,
    ),
    "zeros around, averaged": Case(
        lambda x: jnp.cos(jnp.pad(x, ((2, 1), (0, 0)))).mean(0),
        (ROWS,),
        0,
        permutes(2, all_reduce=1),
        76,
        permutes(2, all_reduce=1),
        76,
    ),
    "a trip of a loop with differences": Case(
        lambda x: lax.scan(lambda c, _: (c.at[1:-1].set((c[2:] + c[:-2]) / 2), (c[1:] - c[:-1]).max()), x, None, length=3),
        (ROWS,),
        0,
        permutes(6, all_reduce=3),
        117,
        permutes(15, all_reduce=4),
        282,
    ),
}


def arguments(shapes: Sequence[tuple[int, ...]], dtype: Any = F32) -> list[Any]:
    draw = np.random.default_rng(0)
    return [draw.normal(size=shape).astype(dtype) for shape in shapes]


def gradient(function: Function, number: int) -> Function:
    def loss(*args: Any) -> Any:
        return sum(jnp.sin(out).sum() for out in jax.tree.leaves(function(*args)))

    return jax.grad(loss, argnums=tuple(range(number)))


def planned(case: Case, function: Function, args: Sequence[Any]) -> Plan:
    plan = pt.plan(function, MESH, *args)
    plan = plan.widen(case.widen) if case.widen else plan
    return plan.tile(plan.arguments()[0], case.dim, "data", padded=case.padded)


def sends(plan: Plan) -> tuple[dict[str, int], int]:
    return {kind: number for kind, number in plan.counts().items() if number}, plan.bytes_per_device()


def agree(plan: Plan, function: Function, args: Sequence[Any]) -> None:
    """Compiled, as a graph and on all devices in lockstep, the results are those of the unpartitioned function."""
    wanted = jax.tree.leaves(jax.jit(function)(*args))
    for found in (plan.compile()(*args), plan.lower("collective").run(*args), interpreted(plan, args)):
        assert not (gap := disagreement(jax.tree.leaves(found), wanted)), gap
