"""An argument that a tactic does not take."""

import partita as pt

pt.Megatron("model", col="w1")  # pyright: ignore[reportCallIssue]
