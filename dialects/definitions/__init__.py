"""The meaning of ops.

    definitions.def       the meaning of each named op, in index notation
    registry              the definitions by name, with those that users add
    syntax_tree           the tree of index notation, and `Definition`
      operators           the operators of expressions: text, precedence, function
    parse, from_lark      text to tree, by the grammar `definitions.lark`
    printer               tree to text
    front_ends            a folder: dimension numbers that a line cannot express
    grounding             a definition written out for operands of given shapes
      ground_form         the result: each dim an index, each index an extent
      dim_terms, indices  which dims the terms take, and which variables are one index
    tilings               which indices can be placed, and what placing them requires of the local op
      requirement_terms   these requirements, as terms
      local_params        parameters that follow from local types
    flops                 how much an op computes

Imports `ranges` and the ground files.
"""
