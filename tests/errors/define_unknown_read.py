"""`y` stands nowhere before."""

import partita as pt

pt.define("absolute(x)   out[i..] = @(y[i..])", abs)
