"""Front ends: they read the dimension numbers of ops for which a line of index notation cannot be written.

    by_name      the front ends, by the name that a definition has after `by`
    gather       gather, the scatters, dynamic_slice and dynamic_update_slice
    gather_form  the general form that these have in common: index vectors that start windows
    ragged_dot   `ragged_dot_general`, by the group of each row

Imports `ground_form` and `syntax_tree`.
"""
