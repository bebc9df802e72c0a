"""Decides the placement of every op and value.

    table                the claims of a plan: where the indices of each op and the dims of each value are placed
      requirements       what an op requires when an index is placed, and the laws for it
    device_sets          on which part of the mesh each op runs, if tactics put some there
      made_again         what is made again on another part instead of being sent there, by price
    propagate            carries claims along one mesh axis through the definitions
    constraints          points of redistribution: those of a program, at which a value may change its layout
    placements           the table's meaning at each op: layouts wanted and produced, and pending reductions
    price                what a step costs, in seconds: by this, all ways to place ops are compared
    choices              other placements of some ops, and the price of all that these read, make and compute
      place_by_cut       takes those of them that cost less, as a minimum cut
    in_trips             what is sent once around a loop, or in each of its trips
    regather             which arguments are gathered for each use, and which once
    loop_hoisting        moves gathers before a loop, and scatters after it
    constants            computes on all devices what depends on no argument
    deferred_reductions  where a pending sum resolves
      linearity          through which ops a pending sum may move
      min_cut            minimum cuts, for the cheapest places to resolve
        preflow          the maximum flow
    axis_splits          which axes to split into sub-axes, so that claims pass the reshapes at which they stop
    relocate             which ops run along another dim than claims say, because that costs less
      free_ops           which ops may, and along which dims
    sort_strategy        whether sorted blocks are merged, or operands gathered and then sorted
    decide               all decisions of a plan, which reports read and lowering writes
    causes               the tactics that cause a redistribution
    ahead                the decisions within the memory of a device, and how far ahead of its use a gather starts
    walk                 the one walk along decisions, with what stands for each value
    in_memory            what is sent in each trip, because a device has no memory to hold it in all trips
      live_ranges        the arrays of one device, and from when to when each is stored
        live_ranges_on_sets  of one device of a set: with copies of those of other sets, and what is made again

Imports `redistribute`, `program` and `rules`.
"""
