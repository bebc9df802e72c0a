"""Proofs: each law for all sizes, coordinates and strides, or a counter-example with sizes.

    __main__     proves all laws, or some
      table      the tables that are printed
      laws       each law, in groups: of the rules, of ranges, of steps, and tilings
      record     what is known of each: it is proved once, for the tests, the tables and the page of the laws
    of_rules     the laws of the `.rules` files, from their texts
    of_ranges    the laws of ranges, factors and windows, which are code
    of_steps     the steps of a redistribution: what each emits is what its layouts say
    of_tilings   the tilings that are derived from definitions: cut, computed and joined, it is the whole
    symbolic     code that takes ints, run over numbers that stand for any
    verdict      what is known of a law
    values       what terms stand for: arrays, pairs, what devices hold
    world        what a meaning may ask of numbers; Python's own numbers
      terms      terms of the solver, for all sizes at once
      bounded    the same for given sizes
    lemmas       what proofs use, proved once
    solver       Z3, which comes with `partita[proofs]`

A law is written nowhere but where it is used: in its file, in the constructors of ranges, in the kinds of steps, in a
definition. A law that is changed is proved as it is then.

Imports `rules`, `laws` for those of programs, and `redistribute` for steps.
"""
