"""From decisions to IR.

    materialise             the decisions as calls of a constructor, which writes them
      bit_exact_lookups     lookups whose elements arrive bit by bit
      constructors          placed builders and slicers: as written, or fused by the builder rules
      device_local_op       the device-local form of an op, with the offsets and masks that its definition asks for
      masked_lookups        looked-up indices, counted from a block's first element
    fuse                    the same calls from text, for the passes of `partita-opt`
    to_spmd                 constructor of one device-local function with explicit collectives
      first_lines           the beginning of such a function, as much as fits on a screen
      local_redistribution  the steps by which a device brings a value into another layout
      scan_blocks           combines scans of blocks into a scan of the whole
      transposed_products   products that only their transposes read
      joined_transforms     Fourier transforms along several dims at once
      gathered_folds        folds across devices without a collective
      before_loops          computes values that free memory before a loop
    in_time                 device-local code over loops, as loops
      loop_schedule         in which loop an op runs
      rescaled_sums         sums that wait for no other fold, though their terms are scaled by what it gives
      trip_ops              what is over a loop, in one of its trips
      trip_regions          how the number of a trip enters the regions of ops
    to_flow                 constructors of graphs of kernels
      across_sets           the device-local program on several device sets, and what crosses
      runs                  device-local code, cut at changes of layout, and between device sets
      on_sets               the axes of a device set, in types and in kernels

Imports `decide`, `redistribute`, `program`, `rules` and `emit`.
"""
