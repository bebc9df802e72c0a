"""Advice: what could be better in a plan, and what to do about it. Everything is tried before it is offered.

    stops                 where propagation stopped and what runs unpartitioned, with bytes and flops
      open_stops          which of these are open
      stop_fixes          tactics with which they are gone, each tried
    conflicts             claims that cannot all hold, and the ways out of them
      open_conflicts      which of these are open
      ways_out            the ways out, those of many conflicts tried in one plan
    tactic_edits          changes of a plan's tactics that end a conflict or a stop, and are not refused
    redundancy            what is replicated, computed by several devices, or not partitioned
    refused_claims        what helps where a claim is refused; each way is tried
    tactic_checks         whether a tactic did what it was asked for
    rewrites              where which law applies, and what it saves
      rewrite_candidates  the places that are tried
    large_values          values that fill the memory, and the range in parts of which they can be computed

Imports `structure`, `cost` and `plan`.
"""
