"""The laws of the `.rules` files: statements from their texts, for the solver and for Python's numbers.

    laws              each law with what is known of it, and the list of those that are not proved
      prove           a law from its text: proved at any place, by induction, or refuted
        statement     what its variables are, what holds for them, and its two sides
        collective_heads    signature, contract and meaning of each collective
          heads             the same of all other heads of the rule language
        leaves        its variables, as terms or as numbers
        refute        a counter-example at small sizes
          replay      the same, computed again by Python's numbers
      programs        a law of programs, whose indices are not written

A meaning in `heads` is one function for the solver and for Python's numbers.
"""
