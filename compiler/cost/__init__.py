"""What one call of a plan costs: bytes sent, flops computed, bytes stored.

    collectives      what is sent, how often, and which tactics are the reason
      causes         the tactics whose placements it resolves, leaves or reaches
      counts         how often each runs, with branches and loops of unknown trip count listed separately; for graphs too
      op_strategies  how lookups, writes, scans, selections and folds run: in blocks, or on a gathered array
      relocations    which ops run along a dim that is stored in parts, instead of gathering it
    flops            what one device computes
    as_lowered       the device-local program of a plan with loops, and how often these run what is sent
      loops          the loops in which ranges run, and what each folds, stores and computes
    memory           the most bytes that one device stores at one time, by value
    device_sets      what crosses from one device set to another, and why ops run where they do
    alike_ends       arguments and results, those that are alike together
    costs            bytes and flops of a call, of all of it or of a part, and the seconds that they take, slow links weighed

Imports `plan` and `views`.
"""
