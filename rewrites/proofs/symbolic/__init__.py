"""Code that takes ints, run over numbers that stand for any: once for each way in which its comparisons can come out.

explore       laws that are code: proved in all runs, or refuted by ints
  given       where a law takes its numbers from
  path        one of the runs: what it asks, and the other outcomes, which are left to other runs
  facts       what is known of numbers, and what follows
  sample      one run alone, for given sizes, with what it decided about them
  symbol      a number that stands for any
  polynomial  what it is made of
"""
