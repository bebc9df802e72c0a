"""Index notation: programs in `*.partita` files, with the mesh and the plans that partition them.

    parse                text to lark's tree, by the grammar `program.lark`, or the error with its likely meaning
      diagnostics        every way in which a text can be wrong, and where in it
    check                the tree to terms: every index has one range, every value one type; meshes, extents, functions
      check_equations, check_expressions       with a function for each kind of phrase
      scope, extents, scalar_functions, terms  indices and positions; sizes; functions of expressions; a checked program
    tactic_statements    statements of plans and the calls of a trace: the same tactics, written in two ways
      addresses          the names of a function's values in plans
    codegen              a checked function to a Python function over JAX arrays, whose lines are those of the text
      codegen_terms, codegen_windows           the walk over terms: the code of each kind of term
      python_code, runtime                     Python code with source lines; the functions that it calls while it is traced
    show                 a program back to its notation
      op_equation        one op as an equation

Imports `trace`, `ops` and `inputs`, and the definitions, with which it shares its expressions.
"""
