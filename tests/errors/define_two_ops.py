"""One text, two ops."""

import partita as pt

TEXT = """
one(x)   out[i..] = @(x[i..])
two(x)   out[i..] = @(x[i..])
"""

pt.define(TEXT, abs)
