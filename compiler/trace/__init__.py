"""From a JAX function to a program.

    trace                       traces the function, and knows how it is called
      mutable_references        mutable references become values
      mutated_arguments         arguments that the function changes in place
        restructured_arguments  objects to which it gives other attributes
    importer                    the jaxpr as operations, one pass
      expansions                primitives that are traced into others: `custom_reduce`, `pool_gradients`, `vmapped_while`
        constant_positions      reads and updates at positions that are constants (`constant_folding`) become slices
        counted_positions       reads and updates at each row's own number become those of a batch
      why_whole                 why some primitives run unpartitioned
    micro_batched               another program: some scopes see one micro-batch at a time
    annotations                 what the program says about layouts
    value_names                 the names of values, from tags and name scopes

Imports `define`, `ops` and `inputs`. Runs nothing.
"""
