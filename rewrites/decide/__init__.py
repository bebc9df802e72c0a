"""Decides the placement of every op and value.

    table         the claims of a plan: where the indices of each op and the dims of each value are placed
      requirements  what an op requires when an index is placed, and the laws for it
    propagate     carries claims along one mesh axis through the definitions
    points        constraints of a program, at which a value changes its layout, and what lies around them
    placements    what the table means at each op: layouts wanted and produced, and what is pending
    regather      which arguments are gathered for each use, and which once
    loop_hoisting  what is gathered before a loop, and what is scattered after it
    deferred_reductions  where a pending sum resolves
      linearity   through which ops it may move
      min_cut     where that is cheapest
        preflow   the largest flow
    relocate      which ops run along a dim that a later tactic stores in parts, because that receives less
      place_by_cut  of ops that may do that, those that do
    sort_strategy  whether sorted blocks are merged, or what is to be sorted is gathered
    decide        all decisions of a plan: what the counts are read from, and what lowering writes

Imports `redistribute`, `program` and `rules`.
"""
