"""What may be done to a program: the laws, and the analyses that decide where to use them.

Nothing here knows JAX or devices, and everything here preserves meaning. Each folder imports only those below it:

    proofs          the laws as statements for a solver, with Z3: `make prove`
    lower           decisions --> placed nests --> device-local code --> graphs
    plan_text       claims and decisions as text
    decide          claims --> propagation --> which sums resolve where, and what is redistributed
    redistribute    the cheapest way from one layout to another
    laws            laws of whole programs: where they apply, and the programs that they make
    program         the program as flat tables
    rules           the laws, one a line, and their compiler
    emit            small local ops: numbers, casts, selects
    rewire          other operands for ops, all of an op at once

      beta:      slice(L, build(L, x))                     => x
      exchange:  slice(a, j, t, all_gather(a, i, s, x))    => all_to_all(a, i, s, j, t, x)    where ...
"""
