"""The strategies of the closed forms, as lists of tactics for `models.Transformer`."""

import partita as pt
from partita.compiler.api.plan import Tactic

MATRICES = ["params/**/w*", "params/embed"]
MOMENTS = ["opt/**/w*", "opt/*/embed"]
COLUMN = {"params/**/wqkv": 2, "params/**/w1": 1}
ROW = {"params/**/wo": 0, "params/**/w2": 0}

NAMES = ("BP", "BP+MP", "BP+MP+Z2", "BP+MP+Z3", "MP")


def strategy(name: str, batch: str | tuple[str, ...] = "data") -> list[Tactic]:
    """The tactics of a strategy by its name: parts joined by `+`, applied in that order.

    "BP+MP+Z3"  -->  [DataParallel("data"), Megatron("model"), ZeRO(3, "data")]
    """
    parts: dict[str, Tactic] = {
        "BP": pt.DataParallel(batch, inputs="batch/*"),
        "MP": pt.Megatron("model", column=COLUMN, row=ROW),
        "Z2": pt.ZeRO(2, "data", params=MATRICES, optimizer=MOMENTS),
        "Z3": pt.ZeRO(3, "data", params=MATRICES, optimizer=MOMENTS),
    }
    return [parts[part] for part in name.split("+")]
