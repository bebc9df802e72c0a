"""The text of a plan: its claims and its decisions as attributes of the program's ops, written and read.

    ends         where an attribute stands, and how it names a node, an operand or a result
    claims       the table of claims
    device_sets  the device sets that tactics claim
    decisions    where ops run, which sums they carry, and the moves of values
      verify     refuses wrong decisions
    stages       from one text to the next: claims are propagated, decisions made, and values moved

Only texts go through here. The stages call the same functions as a plan does. Imports `decide`.
"""
