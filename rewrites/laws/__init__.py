"""Laws of whole programs: what may be written instead of a part of a program, so that it costs less.

    programs.rules   the laws that rules can say, one a line
    by_rule          a law that a rule says: where it applies, and what it makes there
      match          the left side of a rule, found in a program
      made           either side of a rule, made of any kind of term
        build        of ops
        meaning      of random arrays: whether the two sides are equal
      heads          the ops that a rule may name, read off their definitions
      seen           values with an index for each dim, seen through ops that only move elements
    recompute        a value is computed again where the backward pass reads it
    chunk            a part of a program, in a loop over parts of one of its ranges
    law              what all laws have in common, and those of the library
    draft            a copy of a program in which values are replaced

Imports `program` and `rules` beside `dialects`.
"""
