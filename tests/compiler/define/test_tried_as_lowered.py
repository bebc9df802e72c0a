"""The trial of a definition runs what a plan would run: the lowered op, on all devices in lockstep."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.define.one_op_program import program_of, run_in_blocks
from partita.dialects.params import Literal, ParamsAttr
from partita.rewrites.emit import Emitter
from partita.rewrites.lower import device_local_op

LOGITS = "out[b] = sum(v) [v = labels[b]] * @(h[b, k:], w[k:, v])"
H, W, LABELS = np.ones((8, 6), "f4"), np.ones((6, 16), "f4"), np.arange(8) * 2


def logits(h: Any, w: Any, labels: Any) -> Any:
    return jnp.einsum("bk,bk->b", h, w.T[labels])


def unchanged(value: Any, *_: Any) -> Any:
    return value


def test_a_mask_missing_from_the_lowering_gives_a_counter_example(monkeypatch: pytest.MonkeyPatch) -> None:
    pt.define(f"logits_masked(h, w, labels)   {LOGITS}", logits, example=(H, W, LABELS))
    monkeypatch.setattr(device_local_op, "masked", unchanged)
    with pytest.raises(pt.Error, match="`v` cannot be placed") as caught:
        pt.define(f"logits_unmasked(h, w, labels)   {LOGITS}", logits, example=(H, W, LABELS))
    assert any("combined by `sum`" in note for note in caught.value.notes)


def test_an_offset_missing_from_the_lowering_gives_a_counter_example(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_offset(self: object, index: int, dtype: str = "int32") -> Any:
        ops: Emitter = getattr(self, "ops")  # noqa: B009
        return ops.number(0, dtype)

    monkeypatch.setattr(device_local_op._Local, "offset", no_offset)
    with pytest.raises(pt.Error, match="`v` cannot be placed"):
        pt.define(f"logits_unshifted(h, w, labels)   {LOGITS}", logits, example=(H, W, LABELS))


X = np.arange(32.0, dtype="f4").reshape(8, 4) % 5


def cumsum(x: Any) -> Any:
    return jnp.cumsum(x, 0)


def reduce_max(x: Any) -> Any:
    return x.max(0)


def rev(x: Any) -> Any:
    return x[:, ::-1]


@pytest.mark.parametrize(
    ("function", "params"), [(cumsum, {"axis": 0, "reverse": False}), (reduce_max, {"axes": (0,)}), (rev, {"dimensions": (1,)})]
)
def test_the_combined_parts_are_the_unpartitioned_result(function: Callable[..., Any], params: dict[str, Literal]) -> None:
    """The first index of an op over four devices, run on a single one."""
    whole = function(jnp.asarray(X))
    program = program_of(function.__name__, ParamsAttr.of(**params), [("float32", X.shape)], [("float32", whole.shape)])

    def run(operands: Sequence[Any], _: Sequence[Any]) -> list[Any]:
        return [function(*operands)]

    (parts,) = run_in_blocks(program, 0, 4, run, [jnp.asarray(X)])
    assert all(np.array_equal(part, whole) for part in parts)
