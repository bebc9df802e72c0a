"""Redistribution: the cheapest way from one layout to another.

    search              the cheapest way from one layout to another
    moves               the layouts on the way, and the steps between them
    bundles             among many axes, those that stay side by side as one, and only what changes
    ends                among many axes, what is sliced first, and what is gathered last
    shortcuts           steps in a row that become one exchange of pieces
    collective_terms    what the collective laws make of two steps
    steps               what all steps have in common, and the path that they make
    rounds              the permutes of pieces that devices send each other
      kinds             each kind of step: what it does to a layout, its bytes, what it merges with, its op

Imports `rules` and `emit`.
"""
