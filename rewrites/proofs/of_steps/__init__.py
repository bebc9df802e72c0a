"""The steps of redistribution: the code that emits each is run for any numbers, with functions in the place of ops.

step_laws         each kind of step, with its laws
  exchanges       permutes, halos, pieces, pads and cuts, as laws
  steps           what layouts say that devices have; the steps over axes of any size, as laws
  local_arrays    what ops do to local arrays, as functions of a device and an index
"""
