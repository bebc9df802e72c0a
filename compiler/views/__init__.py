"""How the objects of a plan print themselves: at a prompt, in a terminal, in a notebook.

    view      the base of all of them: parts, as text, for rich, and as HTML
    columns   how the columns of a table share a screen
    colours   where a text names a mesh axis; its colour in a notebook
    grouping  items by what they have in common
    listing   lists and mappings whose equal rows are one, and that end after a screen
    progress  a bar on the terminal for work that takes long

Knows nothing of plans.
"""
