"""The meaning of ops.

    definitions.def   the meaning of each named op, in index notation
    registry          the definitions by name, with those that users add
    tree              the tree of index notation, and `Definition`
      operators       the operators of expressions: text, precedence, function
    parse, phrases    text to tree, by the grammar `definitions.lark`
    printer           tree to text
    front_ends        dimension numbers that a line cannot express: `gathers`, `ragged`
    grounding         a definition written out for operands of given shapes
      ground_form     the result: each dim an index, each index an extent
      dims, indices   which dims the terms take, and which variables are one index
    tilings           which indices can be placed, and what placing them requires of the local op
      requires        these requirements, as terms
      dropped_params  parameters that follow from local types
      gather_form     windows as rows of one dim
    flops             how much an op computes

Imports `ranges` and the ground files.
"""
