"""Redistribution: the cheapest way from one layout to another.

    search            the cheapest way from one layout to another
    search_space      the layouts on the way, and the steps that lead from each to the next
    around_loops      values on loops: steps over loops stay apart from those over axes
    axis_bundles      among many axes, axes that stay side by side move as one
    path_ends         among many axes, which are sliced first, and which gathered last
    shortcuts         replaces consecutive steps by one exchange of pieces
    collective_terms  the single collective that equals two steps, by the laws
    slow_links        folds over slow links and others, apart from each other
    between_sets      which blocks cross from one device set to another
    path_text         paths as text, and paths that are read and checked
    steps             the interface of all steps, and the paths that they form
    permute_rounds    the permutes of pieces that devices send each other
    kinds             a folder: each kind of step: its effect on a layout, its bytes, its laws, its op

Imports `rules` and `emit`.
"""
