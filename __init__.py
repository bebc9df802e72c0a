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
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.api.config_file import tactics_from as tactics_from
    from .compiler.api.jit import jit as jit
    from .compiler.api.notation import Notation as Notation, load as load, parse as parse
    from .compiler.api.plan import (
        ConflictWarning as ConflictWarning,
        Plan as Plan,
        plan as plan,
    )
    from .compiler.api.replay import ReplayWarning as ReplayWarning, replay as replay
    from .compiler.api.tactics import (
        FSDP as FSDP,
        Annotated as Annotated,
        ContextParallel as ContextParallel,
        DataParallel as DataParallel,
        EachTrip as EachTrip,
        ExpertParallel as ExpertParallel,
        Megatron as Megatron,
        Microbatch as Microbatch,
        On as On,
        Replicate as Replicate,
        Resolve as Resolve,
        SequenceParallel as SequenceParallel,
        Tactic as Tactic,
        Tensor2D as Tensor2D,
        Tile as Tile,
        TileRange as TileRange,
        VocabularyParallel as VocabularyParallel,
        Widen as Widen,
        ZeRO as ZeRO,
        at as at,
        or_else as or_else,
        repeat as repeat,
        then as then,
    )
    from .compiler.define.define import define as define
    from .compiler.graph.saved.load import load_compiled as load_compiled
    from .compiler.ops.constrain import constrain as constrain
    from .compiler.ops.tag import tag as tag
    from .compiler.plan.named_laws import rule as rule
    from .compiler.programs.kernel import kernel as kernel
    from .compiler.programs.program import program as program
    from .compiler.run.boundary_resharding import PlacementWarning as PlacementWarning
    from .compiler.run.controller import set_in_flight as set_in_flight
    from .compiler.run.device_sets import devices as devices
    from .compiler.run.processes import initialize_distributed as initialize_distributed
    from .compiler.trace.trace import trace as trace
    from .dialects.ground.errors import Error as Error
    from .dialects.mesh import Mesh as Mesh

__version__ = "0.1.0"

_TACTICS = "compiler.api.tactics"
_HOMES = {
    "ConflictWarning": "compiler.api.plan",
    "Error": "dialects.ground.errors",
    "Mesh": "dialects.mesh",
    "Notation": "compiler.api.notation",
    "PlacementWarning": "compiler.run.boundary_resharding",
    "Plan": "compiler.api.plan",
    "ReplayWarning": "compiler.api.replay",
    "Tactic": _TACTICS,
    "at": _TACTICS,
    "constrain": "compiler.ops.constrain",
    "define": "compiler.define.define",
    "devices": "compiler.run.device_sets",
    "initialize_distributed": "compiler.run.processes",
    "jit": "compiler.api.jit",
    "kernel": "compiler.programs.kernel",
    "load": "compiler.api.notation",
    "load_compiled": "compiler.graph.saved.load",
    "or_else": _TACTICS,
    "parse": "compiler.api.notation",
    "plan": "compiler.api.plan",
    "program": "compiler.programs.program",
    "repeat": _TACTICS,
    "replay": "compiler.api.replay",
    "rule": "compiler.plan.named_laws",
    "set_in_flight": "compiler.run.controller",
    "tactics_from": "compiler.api.config_file",
    "tag": "compiler.ops.tag",
    "then": _TACTICS,
    "trace": "compiler.trace.trace",
}
"""Where each public name is defined. The library's tactics are not listed: they register themselves."""


def _home(name: str) -> ModuleType | None:
    """The module of a public name; of a tactic, the one that has all."""
    if name in _HOMES:
        return import_module(f".{_HOMES[name]}", __name__)
    tactics = import_module(f".{_TACTICS}", __name__)
    known = getattr(tactics.Tactic.known.get(name), "__module__", "")
    return tactics if known.startswith(tactics.__name__) else None


def __getattr__(name: str) -> Any:
    if name == "__all__":
        tactics = import_module(f".{_TACTICS}", __name__)
        return sorted((*_HOMES, *(each for each in tactics.Tactic.known if _home(each))))
    home = None if name.startswith("_") else _home(name)
    if home is None:
        raise AttributeError(f"module 'partita' has no attribute {name!r}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]
