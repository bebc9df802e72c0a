"""From decisions to IR.

    materialise     the decisions as placed builders and slicers
      picked        lookups whose elements arrive bit by bit
      constructors  how these are built: as written, or fused by the builder rules
      beginning     as much of it as a screen shows
      localise      the device-local form of an op, with the offsets and masks that its definition asks for
      lookups       looked-up indices, counted from a block's first element
    fuse            the same from text, for the pass `fuse` of `partita-opt`
    to_spmd         the placed program as one device-local function with explicit collectives
      scan_blocks   combines scans of blocks into a scan of the whole
      swapped       products that only their transposes read
      gathered_folds  folds across devices without a collective
      before_loops    what frees memory is computed before a loop
    to_flow         the placed program as a graph of kernels

Imports `decide`, `redistribute`, `program`, `rules` and `emit`.
"""
