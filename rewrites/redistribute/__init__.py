"""Changes of layout.

    search              the cheapest way from one layout to another
    collective_terms    redistributions as terms, which the collective laws rewrite
    steps               what all steps have in common, and the path that they make
      kinds             each kind of step: what it does to a layout, its bytes, what it merges with, its op

Imports `rules` and `emit`.
"""
