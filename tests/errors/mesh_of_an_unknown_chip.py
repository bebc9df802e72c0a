"""A chip that Partita does not know."""

import partita as pt

pt.Mesh(data=4, chip="v5")
