"""Ops that users define: a function, and a line of index notation that says how it can be partitioned.

```
define          `pt.define`: the owner of an op, and its name
op              the op: the rules that JAX and Partita need
by_call         calls that define themselves: `kernels` (Pallas), `sharding_rules` (custom_partitioning)
verify          tries a definition before a program can contain the op; `block_sizes` tries blocks as small as a plan's
  trial         one trial, on arrays of some types (`samples`), compared with the unpartitioned function (`compared`)
  one_op        the op as a program with one index placed, lowered and run on all devices in lockstep
  candidate     the definition to try, and its refusal (`kept_together` writes the line to use instead)
```

Imports `ops`, `inputs`, and the rooms below for the lowering.
"""
