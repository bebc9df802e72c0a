"""A `pt.Tile` with the axis before the dims."""

import partita as pt

pt.Tile("data", {"batch/x": 0})  # pyright: ignore[reportArgumentType]
