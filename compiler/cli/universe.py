"""The entry point for `xdsl-opt` and `xdsl-gui`, which look for universes in the installed packages' entry points.

Everything is loaded on first use, because xDSL's tools read the universe of every package when they start.
"""

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.universe import Universe

from .passes import PASSES


def _array() -> Dialect:
    from ...dialects.array import ARRAY

    return ARRAY


def _flow() -> Dialect:
    from ...dialects.flow import FLOW

    return FLOW


def _lax() -> Dialect:
    from ...dialects.lax import lax

    return lax()


def _spmd() -> Dialect:
    from ...dialects.spmd import SPMD

    return SPMD


DIALECTS: dict[str, Callable[[], Dialect]] = {"array": _array, "flow": _flow, "lax": _lax, "spmd": _spmd}

UNIVERSE = Universe(all_dialects=DIALECTS, all_passes=PASSES)
