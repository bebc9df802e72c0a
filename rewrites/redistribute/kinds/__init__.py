"""The kinds of steps. Each says what it does to a layout, its bytes, what it merges with, and its op.

To add one, write a file like these, its laws in `rules/collectives.rules`, and its op in the dialect `spmd`.

    tiled           what steps that place or remove an axis of a dim have in common
    local           slice, pad, cut: what every device does alone
    all_gather
    folds           all_reduce, reduce_scatter
    all_to_all
    permute
    merge           permutes that merge sorted blocks
    exchange        what exchanges of rows, and of units, have in common
    halo            permutes of what windows read beyond a device's block
    pieces          permutes, or an all_to_all, from any layout to any other

Imports `steps`.
"""

from . import all_gather, all_to_all, folds, halo, local, merge, permute, pieces

__all__ = ["all_gather", "all_to_all", "folds", "halo", "local", "merge", "permute", "pieces"]
