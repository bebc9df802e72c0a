"""The range algebra: a range says how many, a place says where its iterations run.

A place is a mesh axis, a part of one, or a loop. It knows its size, and an axis the device set that it belongs to.

    algebra            the public names
    terms              the terms of the algebra
    laws               their normal form, as constructors
    text               reading them, by the grammar `ranges.lark`
    denotation         which positions a range holds
    common_refinement  when factorisations of one extent fit together
    factor             placed factors: what tactics claim and layouts are made of
    affine_read        how an index reads a dim through a window
    reshapes           reshapes, by their common blocks
    windows            sliding windows, and the halo that a shard needs

Imports only the ground files.
"""
