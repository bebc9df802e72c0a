"""How much the results of a generated program may differ: by the rounding of its narrowest float over some steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from agreement import NARROW, disagreement
from generated import Program

FACTOR = 3.0


def differs(found: Sequence[Any], expected: Sequence[Any], program: Program) -> str:
    """The difference, or an empty text. Wider results that come from narrow values are only as exact as these."""
    if program.narrow == "float32" and program.grad:
        # The loss adds numbers of size 1, which may cancel.
        return disagreement(found[:1], expected[:1], small=1.0) or disagreement(found[1:], expected[1:])
    if program.narrow == "float32":
        return disagreement(found, expected)
    bound, small = NARROW[program.narrow]
    return disagreement(list(map(np.asarray, found)), list(map(np.asarray, expected)), bound * FACTOR, small)
