"""A donated argument of `pt.jit` that does not exist."""

from models import chain

import partita as pt

pt.jit(chain, mesh=pt.Mesh(data=4), donate_argnames=("weights",))
