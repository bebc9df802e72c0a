"""A mesh whose axis has no name."""

import partita as pt

pt.Mesh(4)  # pyright: ignore[reportArgumentType, reportCallIssue]
