"""Single ops, between JAX and the IR: their names, their parameters, and how JAX runs them.

    primitives              JAX's primitives by name, those of users too
    params                  JAX's parameters as the IR's, and back
    prng_keys               arrays of random keys as the `uint32` arrays that hold them
    monoids                 JAX's names for the monoids
    tag, constrain          `pt.tag`, `pt.constrain`
    ragged_products         ragged products, by the group of each row
    identity_primitives     primitives that return their operand, as those of `tag`, `constrain` and `store_once`
    store_once              a value that XLA:CPU does not compute again in each reader
    update_slice            an update at positions that are constants
    jax_expansions          primitives that JAX writes with others
    bind                    runs an op, or a block of ops, on whole arrays or on one device's part of each
      index_operands        reads and writes at positions that XLA would otherwise merge or overflow
      prefetch              a scan that gathers for the next trip while a trip runs
      barrier               an optimization barrier, left out on XLA:CPU
      shard_map             the body of a user's `shard_map`
        mapped_collectives  its collectives, where `jax.vmap` runs it

Imports `inputs`. Does not depend on programs or plans.
"""
