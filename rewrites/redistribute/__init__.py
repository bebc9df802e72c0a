"""Redistribution: the cheapest way from one layout to another.

    search              the cheapest way from one layout to another
    moves               the layouts on the way, and the steps between them
    bundles             among many axes, axes that stay side by side move as one
    ends                among many axes, which are sliced first, and which gathered last
    shortcuts           replaces consecutive steps by one exchange of pieces
    collective_terms    the single collective that equals two steps, by the laws
    steps               the interface of all steps, and the paths that they form
    rounds              the permutes of pieces that devices send each other
      kinds             each kind of step: its effect on a layout, its bytes, its laws, its op

Imports `rules` and `emit`.
"""
