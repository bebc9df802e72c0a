"""Ops that users define: a function, and a line of index notation that says where it may be partitioned.

    define              `pt.define`: who defines an op, and under which name
    user_op             the op itself: what JAX and Partita call for its types, derivatives, batching and lowering
    self_defining       calls that define themselves: `pallas_kernels`, `sharding_rules` (custom_partitioning)
    verify              tries a definition before a program may hold the op; `verify_in_plan` again, as small as a plan cuts
      definition_trial  one trial, on arrays of some types (`samples`), compared with the function on whole arrays
      one_op_program    the op as a program, an index placed, lowered and run on all devices in lockstep
      candidate         the definition to be tried, and the error if it is refused, with the line to use instead

Imports `ops`, `inputs`, and the rooms below for the lowering.
"""
