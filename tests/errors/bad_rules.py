"""A rule whose right side names what its left side does not."""

from partita.rewrites.rules.compile import load

load("eta: build(L, slice(L, x)) => x\nbeta: slice(L, build(L, x)) => y")
