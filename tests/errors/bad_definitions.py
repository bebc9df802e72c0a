"""A definition that reads an operand that it does not have."""

from partita.dialects.definition_text import parse_definitions

parse_definitions("neg(src)    out[i..] = -src[i..]\nadd(lhs, rhs)    out[i..] = lhs[i..] + rsh[i..]\n")
