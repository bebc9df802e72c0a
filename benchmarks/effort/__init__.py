"""What a user writes to partition one training step, in five ways: `python -m benchmarks.effort`.

    plain                     the step on one device, from which each of the others is edited
    tactics                   Partita: three tactics, and `pt.jit` for `jax.jit`
    constraints               `jax.jit` with shardings of the arguments and constraints on the activations
    constraints_everywhere    the same with constraints on the weights where they are used, as ZeRO-3 gathers them
    explicit                  explicit sharding: the types of arrays have it
    mapped                    `jax.shard_map`, collectives by hand
    measure                   the lines, the results, the collectives of each

All follow one strategy: the batch over `data`, Megatron over `model`, and ZeRO-3 over `data`. They are written as the
documentation of each suggests, and formatted by the same formatter.
"""
