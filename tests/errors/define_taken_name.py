"""`exp` is an op already."""

import partita as pt

pt.define("exp(x)   out[i..] = @(x[i..])", abs)
