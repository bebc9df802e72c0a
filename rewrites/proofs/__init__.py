"""Proofs of the laws of the `.rules` files: each for all sizes, coordinates and strides, or a counter-example with sizes.

    __main__          a table of all laws, printed by `make prove`
    laws              each law with what is known of it, and the list of those that are not proved
      prove           a law from its text: proved at any place, by induction, or refuted
        statement     what its variables are, what holds for them, and its two sides
        collective_heads  signature, contract and meaning of each collective
          heads       the same of all other heads of the rule language
        leaves        its variables, as terms or as numbers
        refute        a counter-example at small sizes
          replay      the same, computed again by Python's numbers
      programs        a law of programs, whose indices are not written
      lemmas          what proofs use, proved once
      verdict         what is known of a law
    values            what terms stand for: arrays, pairs, what devices hold
    world             what a meaning may ask of numbers; Python's own numbers
      terms           terms of the solver, for all sizes at once
      bounded         the same for given sizes
    solver            Z3, which comes with `partita[proofs]`

A meaning in `heads` is one function for the solver and for Python's numbers, and no law is written anywhere but in its file:
a law that is changed is proved as it is then.

Imports `rules`, and for laws of programs `laws`.
"""
