"""Index notation: programs in `*.partita` files, with the mesh and the plans that partition them.

read, misread    text to lark's tree, by the grammar `program.lark`; mistakes of spelling
  diagnostics                        every way in which a text can be wrong, and where in it
check            the tree to terms, every index with one range, every value with one type
  scope, sizes, scalars, keywords, positions, expressions, equations, functions
elaborate        a checked function to a Python function over JAX arrays whose lines are those of the text
  code, values, reads, folds, windows, segments, runtime
plans            annotations and `plan` blocks to tactics
  addresses                          what plans call the values of a function
load             the public `pt.load` and `pt.parse`
show, pointful   a program back to its notation
"""
