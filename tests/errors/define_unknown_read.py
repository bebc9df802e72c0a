"""`y` is not an operand."""

import partita as pt

pt.define("absolute(x)   out[i..] = @(y[i..])", abs)
