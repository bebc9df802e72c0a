"""An axis split into sub-axes that have other devices together."""

import partita as pt

mesh = pt.Mesh(data=8)
mesh.refine(data=(3, 2))
