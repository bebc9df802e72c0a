"""One tactic where a list is expected."""

from models import chain

import partita as pt

pt.jit(chain, mesh=pt.Mesh(data=4), tactics=pt.DataParallel("data", inputs="x"))  # pyright: ignore[reportCallIssue, reportArgumentType]
