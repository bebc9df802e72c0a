"""The entry point for `xdsl-opt` and `xdsl-gui`, which look for universes in the installed packages' entry points.

Everything is loaded on first use, because xDSL's tools read the universe of every package when they start.
"""

from collections.abc import Callable
from functools import partial

from xdsl.ir import Dialect
from xdsl.universe import Universe

from .passes import PASSES


def _dialect(name: str) -> Dialect:
    from ...dialects.array import ARRAY
    from ...dialects.flow import FLOW
    from ...dialects.lax import lax
    from ...dialects.spmd import SPMD

    return {"array": ARRAY, "flow": FLOW, "lax": lax(), "spmd": SPMD}[name]


DIALECTS: dict[str, Callable[[], Dialect]] = {name: partial(_dialect, name) for name in ("array", "flow", "lax", "spmd")}

UNIVERSE = Universe(all_dialects=DIALECTS, all_passes=PASSES)
