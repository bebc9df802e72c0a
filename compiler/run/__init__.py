"""Runs device-local code on devices.

    compiled       a plan as a callable with the original's signature
    partitioned    a plan as one JAX primitive, so that a derivative or `vmap` of it is a separate plan
      jaxprs       the jaxprs of these programs
    program_mesh   a device-local function over a mesh of devices, by `jax.shard_map`, under the mesh of the program that calls
    device         a device-local function: its ops by JAX primitives
    collectives    its collectives by `jax.lax`
    resharded      arguments that a call has to move
    compare        a plan run beside the original function
    trial          the same on random arrays, or on those of files

Imports `plan`, `trace` and `ops`.
"""
