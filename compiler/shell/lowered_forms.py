"""The lowered forms of a plan, by name, for `partita lower` and for the shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..graph.graph import Graph, lower
from ..plan.lowering import claims, decisions

if TYPE_CHECKING:
    from ..api.plan import Plan


def _stablehlo(graph: Graph) -> str:
    return "\n".join(map(graph.stablehlo, graph.kernels))


FORMS: Mapping[str, Callable[[Plan], object]] = {
    "spmd": lambda plan: plan.spmd(),
    "ir": lambda plan: plan.ir(),
    "claims": claims,
    "decisions": decisions,
    "unfused": lambda plan: plan.ir(fused=False),
    "graph": lambda plan: lower(plan, "collective").text(),
    "json": lambda plan: lower(plan, "collective").to_json(),
    "dot": lambda plan: lower(plan, "collective").to_dot(),
    "stablehlo": lambda plan: _stablehlo(lower(plan, "whole")),
}
