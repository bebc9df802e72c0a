"""Values of many kinds, to be given where another kind is expected."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

import decimal
import enum
import fractions
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Never

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt


class Refused(Exception):
    """What the methods of `Hostile` raise; it must never be seen."""


class Hostile:
    """An object that nothing may be asked."""

    def _refused(self, *args: object, **kwargs: object) -> Never:
        raise Refused

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __index__ = __int__ = __float__ = _refused
    __lt__ = __getitem__ = __contains__ = __fspath__ = __array__ = __enter__ = _refused  # pyright: ignore


class HostileText(str):
    """A string that nothing may be asked beside what every string says."""

    __slots__ = ()
    __repr__ = __str__ = __format__ = Hostile._refused  # pyright: ignore


class Named(enum.StrEnum):
    X = "x"


class Uncalled:
    """A class that is given in place of one of its objects."""


def deep(kind: type[list[Any]] | type[tuple[Any, ...]], depth: int = 20_000) -> object:
    found: Any = kind()
    for _ in range(depth):
        found = kind((found,))
    return found


def endless() -> Iterator[str]:
    while True:
        yield "x"


def within_itself() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


def tracer() -> object:
    """What a function has in hand while JAX traces it, kept for later."""
    kept: list[object] = []
    jax.make_jaxpr(lambda x: (kept.append(x), x)[1])(jnp.ones(2))
    return kept[0]


def raised() -> Any:
    """Whatever it is called with: a function that nobody can trace."""

    def fn(*args: object, **kwargs: object) -> object:
        del args, kwargs
        return object()

    return fn


KINDS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "-1": lambda: -1,
    "3": lambda: 3,
    "2**31": lambda: 2**31,
    "2**62": lambda: 2**62,
    "2**64": lambda: 2**64,
    "10**5000": lambda: 10**5000,
    "a float": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "a complex number": lambda: 1j,
    "a decimal": lambda: decimal.Decimal(1),
    "a fraction": lambda: fractions.Fraction(1, 2),
    "an empty text": lambda: "",
    "an unknown name": lambda: "nosuch",
    "a long text": lambda: "x" * 100_000,
    "a surrogate": lambda: "\ud800",
    "a text with a null": lambda: "a\0b",
    "a text of signs": lambda: "[*(\\",
    "bytes": lambda: b"x",
    "a bytearray": lambda: bytearray(b"x"),
    "a hostile text": lambda: HostileText("x"),
    "a NumPy text": lambda: np.str_("x"),
    "a member of an enum": lambda: Named.X,
    "a NumPy integer": lambda: np.int64(0),
    "a NumPy float": lambda: np.float32(1),
    "a NumPy boolean": lambda: np.bool_(True),
    "an array of texts": lambda: np.array(["x", "y"]),
    "an array of one text": lambda: np.array(["x"]),
    "an array": lambda: np.ones(3),
    "an empty array": lambda: np.zeros((0,)),
    "an array of objects": lambda: np.array([None, "x"], object),
    "a JAX array": lambda: jnp.ones(2),
    "a tracer": tracer,
    "a shape": lambda: jax.ShapeDtypeStruct((8, 4), "float32"),
    "an empty list": list,
    "an empty tuple": lambda: (),
    "an empty dict": dict,
    "an empty set": lambda: set[object](),
    "a list of texts": lambda: ["x", "w"],
    "a tuple of one text": lambda: ("x",),
    "a list of None": lambda: [None],
    "a list of lists": lambda: [["x"]],
    "a list of numbers": lambda: [0, 1],
    "a list of the hostile": lambda: [Hostile()],
    "a deep list": lambda: deep(list),
    "a deep tuple": lambda: deep(tuple),
    "a list within itself": within_itself,
    "a set": lambda: {"x"},
    "a dict": lambda: {"x": 0},
    "a dict to None": lambda: {"x": None},
    "a dict to arrays": lambda: {"x": np.ones(2)},
    "a dict to huge numbers": lambda: {"x": 2**64},
    "a dict from numbers": lambda: {0: "x"},
    "a dict from the hostile": lambda: {HostileText("x"): Hostile()},
    "a view of keys": lambda: {"x": 0}.keys(),
    "an endless generator": endless,
    "a range": lambda: range(3),
    "an endless range": lambda: range(2**62),
    "a slice": lambda: slice(1),
    "...": lambda: ...,
    "a path": lambda: Path("nowhere"),
    "a function": raised,
    "a class": lambda: Uncalled,
    "a module": lambda: jax,
    "an object": lambda: object(),
    "the hostile": Hostile,
    "an exception": lambda: ValueError("x"),
    "a mesh": lambda: pt.Mesh(a=2),
    "a tactic": lambda: pt.Resolve(),
    "a device": lambda: jax.devices()[0],
    "a partition spec": lambda: jax.sharding.PartitionSpec("a"),
}
"""Each made anew, so that none is used up."""
