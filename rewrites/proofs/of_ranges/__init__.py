"""The laws of ranges, factors and windows: their constructors are run for any numbers, and what they return is compared.

ranges          each law with what is known of it
  range_laws    the laws of products, sums, parts and pads, as predicates on what their code returns
  window_laws   the laws of windows
  factor_laws   the laws of placed factors
  joint_laws    the laws of several factors of one dim
  read_laws     the laws of the reads of windows, and of refinements
  cases         ranges of each kind, of any sizes
"""
