"""An axis split into a number."""

import partita as pt

mesh = pt.Mesh(data=8)
mesh.refine(data=4)  # pyright: ignore[reportArgumentType]
