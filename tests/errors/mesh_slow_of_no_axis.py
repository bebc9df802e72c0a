"""Slow links of an axis that the mesh does not have."""

import partita as pt

pt.Mesh(pod=2, data=4, slow="pods")
