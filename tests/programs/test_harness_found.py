"""Defects that random calls of single definitions found, each as the sentence that did not hold."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from call import Call
from harness import check
from jax import lax

FLOATS = np.linspace(0.1, 1.7, 8, dtype=np.float32)
COMPLEX = (FLOATS + 1j * FLOATS[::-1]).astype(np.complex64)
WORDS = (np.arange(8) * 0x2F000000).astype(np.uint32)
NUMBERS = lax.ScatterDimensionNumbers((0,), (), (0,))


def add(acc: Any, ids: Any, updates: Any) -> Any:
    return lax.scatter_add(acc, ids, updates, NUMBERS, mode="clip")


FOUND: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...]]] = {
    "an arithmetic shift copies the first bit of unsigned numbers too": (
        "shift_right_arithmetic",
        lax.shift_right_arithmetic,
        (WORDS, np.full(8, 3, np.uint32)),
    ),
    "an angle of complex numbers is complex": ("atan2", lax.atan2, (COMPLEX, COMPLEX[::-1])),
    "exponentials of complex numbers are summed": ("cumlogsumexp", lax.cumlogsumexp, (COMPLEX,)),
    "a scalar is bitcast to as many elements as it has parts": (
        "bitcast_convert_type",
        lambda x: lax.bitcast_convert_type(x, jnp.uint8),
        (np.asarray(1.5, ml_dtypes.bfloat16),),
    ),
    "a slice of nothing may step over its end": ("slice", lambda x: lax.slice(x, (8,), (8,), (2,)), (FLOATS,)),
    "a device that holds one element is updated": (
        "dynamic_update_slice",
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)),
        (FLOATS[:2], FLOATS[2:4], np.int32(3)),
    ),
    "a device that holds one element is added to": ("scatter_add", add, (FLOATS[:2], np.array([4], np.int32), FLOATS[2:3])),
}


@pytest.mark.parametrize("sentence", FOUND)
def test_the_sentence_holds(sentence: str) -> None:
    op, function, args = FOUND[sentence]
    check(Call(op, function, args), seed=0)
