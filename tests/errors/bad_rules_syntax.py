"""A rule that stops in the middle."""

from partita.rewrites.rules.compile import load

load("eta: build(L, slice(L, x)) => x\nbeta: slice(L, build(L, x) => x")
