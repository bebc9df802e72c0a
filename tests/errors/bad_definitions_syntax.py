"""A definition that stops in the middle."""

from partita.dialects.definition_text import parse_definitions

parse_definitions("neg(src)    out[i..] = -src[i..\n")
