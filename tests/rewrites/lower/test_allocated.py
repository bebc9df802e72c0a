"""Lowering allocates the ops of its result, and no others."""

from collections.abc import Callable
from typing import Any

import pytest
from growing import leaves
from xdsl.dialects.builtin import ModuleOp

from partita.compiler.api.plan import Plan
from partita.dialects.op_text import ArrayOp
from partita.rewrites.lower.runs import ChangeOp

FORMS: dict[str, Callable[[Plan[Any]], ModuleOp]] = {
    "device-local code": Plan.spmd,
    "a graph": lambda plan: plan.lower("collective").module,
}


@pytest.mark.parametrize("form", FORMS)
def test_lowering_makes_the_ops_of_its_result_and_no_others(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, plan, _, _ = leaves(16)["Adam"]()
    made: list[ArrayOp] = []
    init = ArrayOp.__init__

    def noted(self: ArrayOp, *args: Any) -> None:
        made.append(self)
        init(self, *args)

    monkeypatch.setattr(ArrayOp, "__init__", noted)
    module = FORMS[form](plan)
    # A change of layout stands in the program of a device until the graph is cut there.
    assert {op for op in made if not isinstance(op, ChangeOp)} == {op for op in module.walk() if isinstance(op, ArrayOp)}
