"""Laws of whole programs: what a part of a program may be replaced by, so that it costs less.

    rule_laws           a law that a rule says: where it applies, and what it makes there
      match             the left side of a rule, found in a program
      isomorphic_sites  places of which the same would be found
      interpret_rule    either side of a rule, made of any kind of term
        build_ops       of ops
        rule_check      on random arrays: whether the two sides are equal
      rule_ops          the ops that a rule may name, read off their definitions
      through_moves     values with an index for each dim, seen through ops that only move elements
    stack               products of one value, as one product
    recompute           values that the backward pass computes again
    library             the laws that need nothing but the program: those of `programs.rules`, and `stack`
    law                 what all laws have in common
    module_copy         a copy of a program in which values are replaced

Imports `program` and `rules` beside `dialects`.
"""
