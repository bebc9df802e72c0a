"""A plan's data, and every question that a plan answers.

    state          `State`: the program, the mesh, the table of claims, the tactics; all others take one
      addresses    the names of values
    claims         what a tactic says about values: checked, then propagated
      refusals     why a claim cannot be made, and what to do instead
      advice       what helps there, tried
    products       products of the forward pass, parameters and inputs: where structure is looked for
    pairs          pairs of products over a range that nothing between them folds
    stream         what the sums over an axis add up to: the activations between the parts of a model
    keys           what attention reads at all positions
    vocabulary     tables that inputs look up, and what makes logits
    succession     whether a result is computed from the argument that it replaces
    undone         whether a tactic did what it was asked for
    lowered        the lowering, one step a line: the placed program, the device-local module
    collectives    what is sent, how often, and which tactics are the reason
      causes       the tactics whose placements it resolves, leaves or reaches
      counts       how often each runs, with branches and loops of unknown trip count listed separately; for graphs too
    queries        layouts
    ranges         the ranges of a program: dims that belong together
      range_names  names for those that nobody has named
    summary        the text of a plan: its whole state on a screen
    notebook       the same as HTML, with the axes in their colours
    silent         what is replicated, computed by several devices, or not partitioned
    stops          where propagation stopped and what runs unpartitioned, with bytes and flops
      open_stops   which of these are open
      cures        tactics with which they are gone, each tried
      work         what one device computes
      lookups      whether a table is looked up in blocks or gathered
      elsewhere    which ops run along a dim that is stored in parts, instead of gathering it
    annotations    what the program says about layouts, and what the plan made of it
      said         layouts that a program says, as claims
    memory         the most bytes that one device stores at one time, by value
    explain, diff, expect     why, what changed, and what a test expects
    prefixes       the plans on the way to a plan, after each of its tactics
    saved          the text of a plan file
      program_changes    how a program differs from that of a file
    kin            the tactics of a plan on another program: a derivative, a batched function
    rewriting      a law applied to the program, which is planned by the same tactics
      laws         the law that is asked for
      rewrites     where which law applies, and what it saves
        candidates the places that are tried
      in_parts     whether a large value fills the memory
    grouped        what has something in common, together
    conflicts      claims that cannot all hold
      open_conflicts    which of these are open
      ways_out     the ways out of them, tried for many at one time
      regions      where two plans of a program differ
      trials       what is tried to get out of stops, and of conflicts
      costs        what a call costs, in parts; about how long it takes, slow links weighed

Imports `memory`, `views`, `trace`, `define`, `ops` and `inputs`.
"""
