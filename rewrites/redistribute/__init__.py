"""Changes of layout.

    search              the cheapest way from one layout to another
    collective_terms    redistributions as terms, which the collective laws rewrite
    steps               one collective: what it does to a layout, and the bytes that each device receives

Imports `rules`.
"""
