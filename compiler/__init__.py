"""From the user's program to devices, in the order in which it runs.

trace            a JAX function becomes an xDSL module in named ops, with names and source lines
  arguments, names, scopes, sources     what leaves and values are called, and where they stand
  importer, expand, primitives, params, keys, tag    jaxpr -> ops; composite primitives in terms of defined ones
  unfold, combine, batched, mapped             those that JAX writes with others; with a combiner; under vmap; shard_map
  coverage, reasons                            how each primitive is handled, and why some run unpartitioned
define           a user's function or primitive as an op, by a line of index notation
  defined, written                             the op as JAX and Partita see it; where its text stands
  accept, samples, blocks                      it is tried in blocks, on small random arrays, before a program holds it
  derived: kernels, sharding_rules             calls that say themselves where they may be cut
plan             an immutable program with placements; each tactic gives a new one
  given, actions, tactics, replay              what a person gives, checked; the claims that a tactic seeds; a trace read back
  addresses, readings, explain, diff, expect, report   what a plan says of itself
  counts, looked_up                            how often, and whether a table is looked up in blocks or gathered
(rewrites)       propagate, decide, materialise, fuse, lower: placements -> placed IR -> device-local code
graph            the dataflow graph of kernels and redistributions
  graph_nodes, graph_text, graph_run           to read, to emit, to run node by node
run, jit         one kernel with its collectives inside, as jax.jit(jax.shard_map(...))
  over_devices                                 a device-local function over a mesh
  partitioned                                  a plan as one JAX primitive: a transformation of it is a plan of its own
  execute, evaluate, collectives               ops by JAX primitives, on one device's arrays
notation         programs in index notation, to functions, meshes and plans (its own flow is in its package)
cli, opt         the commands `partita` and `partita-opt` (passes, universe)
  target, laws, trial                          what they look at; a plan on arrays
untyped, quiet   JAX as an untyped module; a pipeline without the cyclic collector
"""
