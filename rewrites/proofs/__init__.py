"""Proofs of the laws of the `.rules` files: each for all sizes, coordinates and strides, or a counter-example with sizes.

    __main__          a table of all laws, printed by `make prove`
    laws              each law with what is known of it, and the list of those that are not proved
      prove           a law from its text: proved at any place, by induction, or refuted
        statement     what its variables are, what holds for them, and its two sides
        heads         signature, contract and meaning of each head of the rule language
        leaves        its variables, as terms or as numbers
        refute        a counter-example at small sizes
          replay      the same, computed again by Python's numbers
      programs        a law of programs, whose indices are not written
      lemmas          what proofs use, proved once
      verdict         what is known of a law
    step_laws         each kind of step of a redistribution, with its laws
      exchanges       permutes, halos, pieces, pads and cuts, as laws
      steps           what layouts say that devices have; the steps over axes of any size, as laws
      local_arrays    what ops do to local arrays, as functions of a device and an index
      symbols         code that takes ints, run for all ints
    ranges            each law of ranges, factors and windows with what is known of it
      range_laws      the laws of products, sums, parts and pads, as predicates on what their code returns
      window_laws     the laws of windows
      factor_laws     the laws of placed factors
      joint_laws      the laws of several factors of one dim
      read_laws       the laws of the reads of windows, and of refinements
      range_cases     ranges of each kind, of any sizes
      explore         code run over numbers that stand for any, on every path
        path          one of these paths
        symbol        such a number
        natural       polynomials, which it is made of
    values            what terms stand for: arrays, pairs, what devices hold
    world             what a meaning may ask of numbers; Python's own numbers
      terms           terms of the solver, for all sizes at once
      bounded         the same for given sizes
    solver            Z3, which comes with `partita[proofs]`

A meaning in `heads` is one function for the solver and for Python's numbers, and no law is written anywhere but in its file:
a law that is changed is proved as it is then.

A step is a law about the code that emits it: it is run for any numbers, with functions in the place of ops.

Imports `rules`, for laws of programs `laws`, and for steps `redistribute`.
"""
