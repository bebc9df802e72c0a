"""The passes of `partita-opt`, by name; each is loaded when it is first run."""

from collections.abc import Callable

from xdsl.passes import ModulePass

PASSES: dict[str, Callable[[], type[ModulePass]]] = {}
