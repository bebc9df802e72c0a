"""How hypothesis chooses the next step of a generated program: a family, the values that fit it, a member.

Each value records what decides which steps it may take: its shape and dtype, whether all ways of running the program compute
it to the last bit (only then a discontinuous function may read it), and how large its elements can be.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import generated_steps as steps
import jax
import jax.numpy as jnp
import numpy as np
from generated_control import CALLS, CHOICES, LINKS, ROWS, Body
from generated_steps import Shape, Step
from hypothesis import strategies as st

LARGEST, LARGEST_RANK = 1 << 12, 4
FLOATS = ("float32", "bfloat16", "float16")
WHOLE = ("int32", "int8", "int16", "uint8", "uint32")
# A value with larger elements is scaled down.
LIMIT = 8.0


@dataclass(frozen=True, slots=True)
class Known:
    """A value of a program."""

    shape: Shape
    dtype: str
    exact: bool = True
    size: float = 2.0

    @property
    def kind(self) -> str:
        return {"b": "truth", "c": "complex", "i": "whole", "u": "whole"}.get(jnp.dtype(self.dtype).kind, "float")


@dataclass(frozen=True, slots=True)
class Chooser:
    """Draws one step on the values so far."""

    draw: st.DrawFn
    values: Sequence[Known]
    grad: bool
    floats: tuple[str, ...]

    def numbered(self, *kinds: str) -> Iterator[tuple[int, Known]]:
        """Later values first, so that programs are long chains, and hypothesis shrinks towards the first."""
        for n in reversed(range(len(self.values))):
            if not kinds or self.values[n].kind in kinds:
                yield n, self.values[n]

    def one(self, *kinds: str, least: int = 0, exact: bool = False) -> tuple[int, Known] | None:
        fits = [(n, v) for n, v in self.numbered(*kinds) if len(v.shape) >= least and (v.exact or not exact)]
        return self.draw(st.sampled_from(fits)) if fits else None

    def like(self, value: Known, exact: bool = False) -> int:
        """A value of the same shape and dtype; it may be the same."""
        alike = (value.shape, value.dtype)
        return self.draw(
            st.sampled_from([n for n, v in self.numbered() if (v.shape, v.dtype) == alike and (v.exact or not exact)])
        )

    def of(self, *tables: Mapping[str, object]) -> str:
        return self.draw(st.sampled_from([name for table in tables for name in table]))

    def dim(self, value: Known) -> int:
        return self.draw(st.integers(0, len(value.shape) - 1))

    def ids(self) -> int:
        return self.draw(st.sampled_from([n for n, v in self.numbered("whole") if v.dtype == "int32" and len(v.shape) == 1]))

    def body(self, value: Known) -> Body:
        links = st.tuples(st.sampled_from(sorted(LINKS)), st.integers(0, len(value.shape) - 1))
        return tuple(self.draw(st.lists(links, min_size=1, max_size=3)))


Family: TypeAlias = Callable[[Chooser], "Step | None"]


def unary(c: Chooser) -> Step | None:
    if (found := c.one("float", "whole", "truth", "complex")) is None:
        return None
    n, value = found
    match value.kind:
        case "whole":
            names = {name: name for name in steps.WHOLE_UNARY if name != "abs" or not value.dtype.startswith("u")}
            return Step(f"whole {c.of(names)}", (n,))
        case "truth":
            return Step("truth not", (n,))
        case "complex":
            return Step(c.of(steps.COMPLEX_UNARY), (n,))
        case _:
            kinked = [steps.KINKED] if value.exact or not c.grad else []
            jumping = [steps.JUMPING] if value.exact and not c.grad else []
            return Step(c.of(steps.SMOOTH, *kinked, *jumping), (n,))


def binary(c: Chooser) -> Step | None:
    if (found := c.one()) is None:
        return None
    n, value = found
    match value.kind:
        case "whole":
            name = c.of({f"whole {each}": each for each in steps.WHOLE_BINARY}, steps.COMPARISONS)
            return Step(name, (n, c.like(value)))
        case "truth":
            return Step(f"truth {c.of(steps.TRUTH_BINARY)}", (n, c.like(value)))
        case "complex":
            return Step(c.draw(st.sampled_from(("add", "sub", "mul"))), (n, c.like(value)))
        case _:
            m = c.like(value)
            exact = value.exact and c.values[m].exact
            kinked = [steps.KINKED_BINARY] if exact or not c.grad else []
            return Step(c.of(steps.SMOOTH_BINARY, *kinked, *([steps.COMPARISONS] if exact else [])), (n, m))


def along(c: Chooser) -> Step | None:
    if (found := c.one(least=1)) is None:
        return None
    n, value = found
    match value.kind:
        case "whole":
            return Step(c.of(steps.WHOLE_ALONG, steps.ORDERED_ALONG, steps.EXACT_ALONG), (n,), (c.dim(value),))
        case "truth":
            return Step(c.of(steps.TRUTH_ALONG), (n,), (c.dim(value),))
        case "complex":
            return Step(c.draw(st.sampled_from(("sum", "mean", "cumsum"))), (n,), (c.dim(value),))
        case _:
            ordered = [steps.ORDERED_ALONG] if value.exact or not c.grad else []
            exact = [steps.EXACT_ALONG] if value.exact and not c.grad else []
            return Step(c.of(steps.SMOOTH_ALONG, *ordered, *exact), (n,), (c.dim(value),))


def dots(c: Chooser) -> Step | None:
    if (found := c.one("float", "float", "whole", "complex", least=1)) is None:
        return None
    n, x = found
    fits = [
        (m, i, j)
        for m, y in c.numbered(x.kind)
        for i, a in enumerate(x.shape)
        for j, b in enumerate(y.shape)
        if a == b and x.dtype == y.dtype
    ]
    m, i, j = c.draw(st.sampled_from(fits))
    y = c.values[m]
    batches = [(k, h) for k, a in enumerate(x.shape) for h, b in enumerate(y.shape) if a == b and k != i and h != j]
    return Step("dot", (n, m), ((i, j), c.draw(st.sampled_from([None, *batches]))))


def biases(c: Chooser) -> Step | None:
    fits = [
        (n, m, dim)
        for n, x in c.numbered("float", "whole")
        for m, y in c.numbered(x.kind)
        for dim, extent in enumerate(x.shape)
        if y.shape == (extent,) and x.dtype == y.dtype and len(x.shape) > 1
    ]
    if not fits:
        return None
    n, m, dim = c.draw(st.sampled_from(fits))
    return Step("bias", (n, m), (dim,))


def moves(c: Chooser) -> Step | None:
    if (found := c.one(least=1)) is None:
        return None
    n, value = found
    dim = c.dim(value)
    extent, rank = value.shape[dim], len(value.shape)
    number = st.integers
    options: dict[str, Callable[[], tuple[object, ...]]] = {
        "transpose": lambda: (tuple(c.draw(st.permutations(range(rank)))),),
        "rev": lambda: (dim,),
        "roll": lambda: (dim,),
        "tile": lambda: (dim,),
        "row": lambda: (dim,),
        "spread": lambda: (dim, c.draw(st.sampled_from((4, 2, 3, 8)))),
        "strided": lambda: (dim, c.draw(number(0, min(2, extent - 1))), c.draw(number(1, 3))),
        "padded": lambda: (dim, tuple(c.draw(st.sampled_from(each)) for each in ((0, 1, 2), (0, 1, -1), (0, 1)))),
    }
    if rank > 1:
        options["merge"] = lambda: (c.draw(number(0, rank - 2)),)
        options["causal"] = lambda: tuple(c.draw(st.permutations(range(rank)))[:2])
    if factors := [k for k in (2, 4, 3) if extent % k == 0]:
        options["split"] = lambda: (dim, c.draw(st.sampled_from(factors)))
    if extent == 1:
        options["only"] = lambda: (dim,)
    if extent % 2 == 0 and value.kind in ("float", "whole"):
        options["halves"] = lambda: (dim,)
    name = c.of(options)
    return Step(name, (n,), options[name]())


def pairs(c: Chooser) -> Step | None:
    """Two values joined, or one chosen from, element by element."""
    if (found := c.one(least=1)) is None:
        return None
    n, value = found
    flags = [m for m, v in c.numbered("truth") if v.shape in (value.shape, ())]
    names = ["concat", "stack", "choose", "choose"] if flags else ["concat", "stack"]
    name = c.draw(st.sampled_from(names))
    if name == "choose":
        return Step(name, (c.draw(st.sampled_from(flags)), n, c.like(value)))
    return Step(name, (n, c.like(value)), (c.dim(value),))


def lookups(c: Chooser) -> Step | None:
    if (found := c.one(least=1)) is None:
        return None
    n, value = found
    dim, ids = c.dim(value), c.ids()
    added = ["put"] if value.kind != "truth" else []
    name = c.draw(st.sampled_from(["take", "along", *added, "window", "update", "one hot"]))
    match name:
        case "take":
            return Step(name, (n, ids), (dim, c.draw(st.sampled_from(("clip", "fill", "wrap")))))
        case "put":
            smooth = value.kind in ("float", "whole") and (value.exact or not c.grad)
            how = ("add", "max", "min") if smooth else ("add",)
            return Step(name, (n, ids), (c.draw(st.sampled_from(how)), c.draw(st.sampled_from(("clip", "drop")))))
        case "one hot":
            return Step(name, (ids,), (value.shape[dim],))
        case _:
            return Step(name, (n, ids), (dim,))


def casts(c: Chooser) -> Step | None:
    """To a dtype that keeps the value's information; two floats make a complex number."""
    if (found := c.one()) is None:
        return None
    n, value = found
    match value.kind:
        case "whole" | "truth":
            return Step("cast", (n,), (c.draw(st.sampled_from((*c.floats, *WHOLE))),))
        case "float" if value.dtype == "float32" and c.draw(st.booleans()):
            return Step("complex", (n, c.like(value)))
        case "float" if value.exact and not c.grad and c.draw(st.booleans()):
            return Step("cast", (n,), (c.draw(st.sampled_from(WHOLE)),))
        case "float":
            return Step("cast", (n,), (c.draw(st.sampled_from(c.floats)),))
        case _:
            return None


def windows(c: Chooser) -> Step | None:
    if (found := c.one("float", least=2)) is None:
        return None
    n, value = found
    kernels = [
        m
        for m, k in c.numbered("float")
        if k.dtype == value.dtype and len(value.shape) == 3 and (len(k.shape) == 2 and k.shape[0] == value.shape[1])
    ]
    if kernels and value.shape[-1] >= 3:
        return Step("convolved", (n, c.draw(st.sampled_from(kernels))), (c.draw(st.booleans()),))
    dims = [dim for dim, extent in enumerate(value.shape) if extent > 1]
    monoids = ("sum", "max") if value.exact or not c.grad else ("sum",)
    return Step("pooled", (n,), (c.draw(st.sampled_from(dims)), c.draw(st.sampled_from(monoids)))) if dims else None


def control(c: Chooser) -> Step | None:
    """Calls, loops and choices around a chain of small steps."""
    if (found := c.one("float", least=1)) is None:
        return None
    n, value = found
    w = c.draw(st.sampled_from([m for m, v in c.numbered("float") if v.dtype == value.dtype]))
    rows: list[str] = [*ROWS, "loop"] if len(value.shape) > 1 else []
    stacks = [m for m, v in c.numbered("float") if len(v.shape) == 3 and v.shape[1:] == value.shape[-1:] * 2]
    stacks = [m for m in stacks if c.values[m].dtype == value.dtype]
    whiles: list[str] = [] if c.grad else ["while"]
    more = ["layers"] * 3 if stacks else []
    name = c.draw(st.sampled_from([*CALLS, *rows, "repeated", *whiles, *CHOICES, *more]))
    body = c.body(value)
    match name:
        case "layers":
            return Step(name, (n, c.draw(st.sampled_from(stacks))))
        case "loop":
            return Step(name, (n, w), (body, c.draw(st.booleans())))
        case "repeated":
            return Step(name, (n, w), (body, c.draw(st.integers(1, 3))))
        case "while":
            return Step(name, (n, w, c.ids()), (body,))
        case "cond" | "switch":
            return Step(name, (n, w, c.ids()), (body, c.body(value)))
        case _:
            return Step(name, (n, w), (body,))


def examples(c: Chooser) -> Step | None:
    """Any primitive. It may be discontinuous, so it takes only values of the widest float."""
    found = [n for n, v in c.numbered("float") if v.dtype == "float32"]
    if c.grad or c.floats != ("float32",) or not found:
        return None
    return Step("example", (c.draw(st.sampled_from(found)),), (c.of(steps.EXAMPLES),))


FAMILIES: Sequence[tuple[Family, int]] = (
    (unary, 4),
    (binary, 4),
    (along, 5),
    (dots, 6),
    (biases, 2),
    (moves, 5),
    (pairs, 2),
    (lookups, 3),
    (casts, 2),
    (windows, 1),
    (control, 4),
    (examples, 2),
)
families = st.sampled_from([family for family, weight in FAMILIES for _ in range(weight)])


def choose(chooser: Chooser) -> tuple[Step, Known] | None:
    """A step that fits, and its result; None if the drawn family has none, or if its result is too large."""
    step = chooser.draw(families)(chooser)
    if step is None:
        return None
    structs = [jax.ShapeDtypeStruct(v.shape, jnp.dtype(v.dtype)) for v in chooser.values]
    result = jax.eval_shape(step.run, structs)
    if not 0 < prod(result.shape) <= LARGEST or len(result.shape) > LARGEST_RANK:
        return None
    operands = [chooser.values[n] for n in step.operands]
    known = Known(result.shape, result.dtype.name, exact(step, operands, result.dtype), size(step, operands))
    if known.size > LIMIT and known.kind in ("float", "complex"):
        return replace(step, squash=True), replace(known, exact=False, size=1.0)
    return step, known


# Steps that only move, choose or round.
KEEPING = {
    *steps.MOVES,
    *steps.ORDERED_ALONG,
    *steps.EXACT_ALONG,
    *steps.KINKED,
    *steps.KINKED_BINARY,
    *steps.COMPLEX_UNARY,
    *("ceil", "floor", "sign", "round", "neg", "take", "along", "window", "update", "one hot", "complex", "barrier"),
}


def exact(step: Step, operands: Sequence[Known], dtype: np.dtype[np.generic]) -> bool:
    """Whether the result is the same to the last bit however it is computed: for integers always, as none come from floats."""
    whole = dtype.kind in "biu"
    return whole or (step.name in KEEPING and all(each.exact for each in operands))


def size(step: Step, operands: Sequence[Known]) -> float:
    """A bound of the elements that holds in practice."""
    sizes = [each.size if each.kind in ("float", "complex") else 7.0 for each in operands]
    first = operands[0]
    match step.name:
        case "mul" | "pow":
            return sizes[0] * sizes[1]
        case "add" | "sub" | "bias" | "put":
            return sum(sizes[:2])
        case "dot" | "convolved":
            return sizes[0] * sizes[1] * 2
        case "square":
            return sizes[0] ** 2
        case "integer_pow":
            return sizes[0] ** 3
        case "expm1":
            return 2.0 ** sizes[0]
        case "halves":
            return sizes[0] ** 2
        case "sum" | "cumsum" | "cumsum back":
            return sizes[0] * float(np.sqrt(max(first.shape, default=1)))
        case "pooled" | "counted" | "affine":
            return sizes[0] + 2
        case _:
            return max([2.0, *sizes])
