"""The entry point for `xdsl-opt` and `xdsl-gui`, which look for universes in the installed packages' entry points.

Everything is loaded on first use, because xDSL's tools read the universe of every package when they start.
"""

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.universe import Universe

from ...dialects import dialects
from .passes import PASSES


def _dialect(name: str) -> Callable[[], Dialect]:
    return lambda: dialects()[name]


UNIVERSE = Universe(all_dialects={name: _dialect(name) for name in ("array", "flow", "lax", "spmd")}, all_passes=PASSES)
