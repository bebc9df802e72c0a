"""A rule whose right side has a variable that the left side does not have."""

from partita.rewrites.rules.compile import load

load("eta: build(L, slice(L, x)) => x\nbeta: slice(L, build(L, x)) => y")
