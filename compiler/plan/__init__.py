"""What a plan is: a program, the placement of its ranges, and the tactics that placed them.

    state                `State`: the program, the mesh, the table of claims, the tactics; all questions take one
      donation           the results that take the buffers of donated arguments
      addresses          the names of values
      range_names        names for ranges that nobody has named
    source_lines         where in the user's program a value or an op is
    claims               what a tactic says about values: checked, then propagated
      seeds              the claims before they are checked
      refusals           why a claim cannot be made, and what to do instead
    on_parts             parts of a program on parts of the mesh, which are device sets
    annotation_outcomes  what the program says about layouts, and what the plan made of it
      annotation_claims  layouts that a program says, as claims
    derived_plans        the tactics of a plan on another program: a derivative, a batched function
    history              the plans on the way to a plan, after each of its tactics
    rewriting            a law applied to the program, which is planned by the same tactics
      named_laws         the law that is asked for
    each_micro_batch     the plan of the program in which some scopes see one micro-batch at a time
    program_changes      how a program differs from that of a file
    lowering             the lowering, one step a line: the placed program, the device-local module
    layouts              the layouts of its values

Imports `views`, `trace`, `define`, `ops` and `inputs`.
"""
