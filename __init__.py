"""Partita: a tensor IR compiler with declarative partitioning, for JAX.

    import partita as pt

    mesh = pt.Mesh(data=4, model=2)
    plan = pt.plan(train_step, mesh, params, opt, batch)
    plan = plan.apply(pt.DataParallel("data", inputs="batch/*"))
    step = plan.compile()

The names below are the public face; `docs/idea.md` says what they mean. They load when first used, so that `partita-opt`
and the tests of the IR never pay for importing JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .compiler.api.jit import jit as jit
    from .compiler.api.notation import Notation as Notation
    from .compiler.api.notation import load as load
    from .compiler.api.notation import parse as parse
    from .compiler.api.plan import Plan as Plan
    from .compiler.api.plan import plan as plan
    from .compiler.api.plan import replay as replay
    from .compiler.api.tactics import DataParallel as DataParallel
    from .compiler.api.tactics import ExpertParallel as ExpertParallel
    from .compiler.api.tactics import Megatron as Megatron
    from .compiler.api.tactics import Replicate as Replicate
    from .compiler.api.tactics import Tile as Tile
    from .compiler.api.tactics import ZeRO as ZeRO
    from .compiler.define.define import define as define
    from .compiler.ops.tag import tag as tag
    from .compiler.trace.trace import trace as trace
    from .dialects.errors import Error as Error
    from .dialects.mesh import Mesh as Mesh

__version__ = "0.1.0"

_ROOMS = {
    "compiler.define.define": ("define",),
    "compiler.api.jit": ("jit",),
    "compiler.api.notation": ("Notation", "load", "parse"),
    "compiler.api.plan": ("Plan", "plan", "replay"),
    "compiler.api.tactics": ("DataParallel", "ExpertParallel", "Megatron", "Replicate", "Tile", "ZeRO"),
    "compiler.ops.tag": ("tag",),
    "compiler.trace.trace": ("trace",),
    "dialects.errors": ("Error",),
    "dialects.mesh": ("Mesh",),
}
_HOMES = {name: module for module, names in _ROOMS.items() for name in names}

__all__ = [
    "DataParallel",
    "Error",
    "ExpertParallel",
    "Megatron",
    "Mesh",
    "Notation",
    "Plan",
    "Replicate",
    "Tile",
    "ZeRO",
    "define",
    "jit",
    "load",
    "parse",
    "plan",
    "replay",
    "tag",
    "trace",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'partita' has no attribute {name!r}")
    value = getattr(import_module("." + _HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
