"""A definition that reads an operand that it does not have."""

from partita.dialects.definitions.parse import parse_definitions

parse_definitions("neg(src)    out[i..] = -src[i..]\nadd(lhs, rhs)    out[i..] = lhs[i..] + rsh[i..]\n")
