"""`pt.constrain`: a layout for an intermediate value, written in the program itself.

It computes nothing, and no plan has to follow it: the tactic `pt.Annotated()` makes claims of it. It is a primitive so that it
survives tracing, batching and differentiation. A cotangent has the layout of its value.

    h = pt.constrain(jax.nn.relu(x @ w1), "data, _, model")   -- Annotated() -->   h: f32[data*64, 16, model*512]
"""

import re
from collections.abc import Sequence
from typing import Any

from jax import Array

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error, Location
from ..inputs.arguments import abstract
from ..inputs.checks import refused
from ..jax_private import ad, batching
from .identity_primitives import identity

AxesOfDims = tuple[tuple[str, ...] | None, ...]
"""For each dim, the axes that tile it, major to minor: empty if it is whole, None if nothing is said about it."""

constrain_p: Any = identity("constrain")

_AXIS = re.compile(r"@?([A-Za-z_]\w*(?:\.\d+:\d+)?)\s*$")


def constrain(x: Array, text: str) -> Array:
    """`x` itself, with the layout that `pt.Annotated()` gives it: for each dim its mesh axes, or `_` for any layout.

    Several axes of one dim are written with `*`, major to minor: `"pod*data, _, model"`. Outside of a plan, as under `jax.jit`,
    it is the identity. Raises Error for a text that is not such a list, and for another number of dims than `x` has.
    """
    dims = parse(text)
    try:
        rank = len(abstract(x).shape)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise refused("x", "an array", x, 'write pt.constrain(x, "data, _, model"): the value, then its layout') from None
    if len(dims) != rank:
        title = f"the constraint `{str.__str__(text)}` has {counted(len(dims), 'dim')}, but `x` has {rank}"
        kept = [*(part.strip() for part in text.split(",") if part.strip()), *["_"] * rank][:rank]
        raise Error(title, helps=[f'write one for each dim, and `_` for any layout: "{", ".join(kept)}"'])
    return constrain_p.bind(x, layout=dims)


def parse(text: str) -> AxesOfDims:
    """Parses a text such as `data, _, pod*model` to the axes of each dim. Raises Error, with a caret, if it is malformed."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused("text", "a constraint, a string", text, 'write pt.constrain(x, "data, _, model")')
    text = str.__str__(text)
    dims, start = list[tuple[str, ...] | None](), 0
    for part in text.split(",") if text.strip() else ():
        dims.append(None if part.strip() == "_" else tuple(_axes(text, part, start)))
        start += len(part) + 1
    axes = [axis for dim in dims for axis in dim or ()]
    if twice := [axis for axis in axes if axes.count(axis) > 1]:
        raise Error(f"the constraint `{text}` has the axis `{twice[0]}` twice", helps=["an axis tiles one dim of a value"])
    return tuple(dims)


def _axes(text: str, part: str, start: int) -> Sequence[str]:
    found: list[str] = []
    for each in part.split("*"):
        match = _AXIS.match(each.strip())
        if match is None:
            at = start + len(each) - len(each.lstrip())
            location = Location("constraint", 1, at + 1, at + 1 + max(len(each.strip()), 1), text)
            helps = ['write the axes of each dim, and `_` for any layout: "data, _, pod*model"']
            raise Error("expected a mesh axis or `_`", location=location, helps=helps)
        found.append(match[1])
        start += len(each) + 1
    return found


def _transpose(ct: Array, _: Array, **params: object) -> list[Array]:
    return [constrain_p.bind(ct, **params)]


def _batch(args: Sequence[Array], dims: Sequence[int], *, layout: AxesOfDims) -> tuple[Array, int]:
    """The rule for `vmap`: the batch dim gets no constraint."""
    (at,) = dims
    return constrain_p.bind(args[0], layout=(*layout[:at], None, *layout[at:])), at


ad.deflinear2(constrain_p, _transpose)
batching.primitive_batchers[constrain_p] = _batch
