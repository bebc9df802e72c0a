"""The tilings that are derived from definitions: operands cut, computed and joined are the whole.

tilings         each tiling: proved, or refuted; and the list of those that are not proved
  placements    what it says: cut, compute and join, and it is the whole
  samples       operands of a definition at small ranks
  definitions   the meaning of a definition: its own expression
  blocks        the worlds of blocks, and the lemmas on them
"""
