"""`partita run`: a plan tried on arrays.

mlp on data=4, model=2

result    layout                  largest error
result    f32[data*128, 256]            4.7e-07

2 all_gather, 1 all_reduce; 917,504 bytes received by a device in a call
"""

from collections.abc import Mapping

from rich.console import RenderableType
from rich.text import Text

from ..api.plan import Plan
from .tables import table, titled, totals


def report(plan: Plan, errors: Mapping[str, float]) -> RenderableType:
    layouts = plan.layout("result")
    rows = [(name, layouts[name], f"{error:.1e}") for name, error in errors.items()]
    return titled(plan, table(("result", "layout", "largest error"), rows), Text(totals(plan)))
