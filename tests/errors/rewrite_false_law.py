"""A rule that is not a law."""

import partita as pt

pt.rule("logs: log(x * y) => log(x) + log(y)")
