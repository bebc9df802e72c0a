"""Answers about a whole plan, in text.

    summary    the text of a plan: its whole state on a screen
      loops    the loops in which a plan runs, and what each needs of others
    notebook   the same as HTML, with the axes in their colours
    explain    why values have their layouts, why a collective runs, what a conflict is about
    diff       what changed between two plans
    expect     what a test expects
    plan_text  the text of a plan file

Imports `advice`, `structure`, `cost` and `plan`.
"""
