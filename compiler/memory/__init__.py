"""The memory of one device, estimated from the decisions of a plan, without compiling it.

    kinds         how XLA stores an op's operands and results: fused, folded, updated in place, or separate arrays
    local_arrays  `LocalArray` and `Step`: the arrays of one device, and the steps that read and compute them
    steps         decisions --> the steps of a program, loop body or branch, in the order of lowering; what products copy
    fusion        which of these arrays are never stored, because their uses compute them again
    live_ranges   in which order XLA runs the steps, from when to when each array is stored, and the most bytes at one time

It models XLA on CPU, whose own figure can be compared without an accelerator. Imports `rewrites` and `dialects` only.
"""
