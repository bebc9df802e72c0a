"""What `xdsl-opt` and `xdsl-gui` find of us: they look for universes among the installed packages' entry points.

Everything is loaded when it is first needed, for the tools of xDSL read the universe of every package at their start.
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
