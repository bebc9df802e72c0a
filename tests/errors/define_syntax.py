"""A bracket is not closed."""

import partita as pt

pt.define("doubled(x)   out[i..] = @(x[i..)", abs)
