"""The reference semantics: programs and ops in NumPy, the oracle of the tests.

    interpret             a program, at every stage of its lowering
      lockstep            values on a mesh: one array for each device
    evaluate              one op, by its definition
      scalar_functions    the functions that `@` stands for in elementwise ops
      scans               prefix folds
      whole_dims, linalg  functions of whole dims: sorts, transforms, linear algebra
      user_functions      the functions of ops that are defined at run time

Imports every other part of `dialects`.
"""
