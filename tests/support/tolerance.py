"""How much the results of a generated program may differ: as much as rounding in its narrowest float shows after some steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from agreement import NARROW, disagreement
from generated import Program

FACTOR = 3.0


def differs(found: Sequence[Any], expected: Sequence[Any], program: Program) -> str:
    """What differs, or nothing. Wider results that came from narrow values are as exact as these."""
    if program.narrow == "float32":
        return disagreement(found, expected)
    bound, small = NARROW[program.narrow]
    return disagreement(list(map(np.asarray, found)), list(map(np.asarray, expected)), bound * FACTOR, small)
