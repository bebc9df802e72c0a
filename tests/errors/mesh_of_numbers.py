"""A mesh whose axes have no names."""

import partita as pt

pt.Mesh(4, 2)  # pyright: ignore[reportArgumentType, reportCallIssue]
