"""A mesh given as a pair."""

import partita as pt

pt.Mesh(("data", 4))  # pyright: ignore[reportArgumentType, reportCallIssue]
