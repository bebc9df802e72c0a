"""From a person's program to devices: the flow, in the order in which it runs.

trace            a JAX function becomes an xDSL module in named ops, with names and source lines
  arguments, paths, names, scopes, sources     what leaves and values are called, and where they stand
  importer, expand, params, keys, tag          jaxpr -> ops; composite primitives in terms of defined ones
plan             an immutable program with placements; each tactic gives a new one
  actions, tactics, replay                     the claims that a tactic seeds; the library; a trace read back
  addresses, readings, diff, report            what a plan says of itself
(rewrites)       propagate, decide, materialise, fuse, lower: placements -> placed IR -> device-local code
graph            the dataflow graph of kernels and redistributions: to read, to emit, to run node by node
run, jit         one kernel with its collectives inside, as jax.jit(jax.shard_map(...))
  execute, evaluate, collectives               ops by JAX primitives, on one device's arrays
cli, opt         the commands `partita` and `partita-opt`
"""
