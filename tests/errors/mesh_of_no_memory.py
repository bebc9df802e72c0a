"""A memory without a unit."""

import partita as pt

pt.Mesh(data=4, memory="12")
