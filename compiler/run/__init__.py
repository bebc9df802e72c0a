"""Runs device-local code on devices.

    compiled             a plan as a callable with the original's signature
    partitioned          a plan as one JAX primitive, so that a derivative or `vmap` of it is a separate plan
      jaxprs             the jaxprs of these programs
    addressable          arrays of which other processes have some parts
    transfers            blocks of arrays, moved to other devices, also of other processes
    processes            joins this process to those of a program
      trail              what it has issued, in lines that outlive it
    controller           issues programs in one order, few of them in flight
    device_sets          virtual device sets, and the devices on which they are
    extended_shard_map   a device-local function over a mesh, by `jax.shard_map`, also under another mesh
    callbacks            host callbacks whose exceptions are kept
    device_code          a device-local function: its ops by JAX primitives
    collectives          its collectives by `jax.lax`
    boundary_resharding  arguments that a call has to move
    compare              a plan run beside the original function
    trial_run            the same on random arrays, or on those of files

Imports `plan`, `trace` and `ops`.
"""
