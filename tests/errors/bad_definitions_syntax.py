"""A definition that stops in the middle."""

from partita.dialects.definitions.parse import parse_definitions

parse_definitions("neg(src)    out[i..] = -src[i..\n")
