"""A plan as one page for a browser without a network: the program, and what each tactic changed in it.

Data flows one way: a plan becomes data, the data is put into the page, the page draws it. The dataflow graph in it is that of
the page of a graph.

    page               `write`: the data put into the page, and the file written
    data               all data of a plan: its program once, and a step, with its totals and all below, for each of its tactics
      program          the ops by scope, and what they read
        scopes         where an op is in the user's program: direction, loop, scope, function, line
      collective_rows  collectives, those of layers that are alike together, with their reasons
      layout_drawings  the layouts of all values, and how to draw each
      problems         conflicts, stops, what runs unpartitioned, what is in excess
      loop_rows        the loops in which ranges run, and what crosses between them
      memory_timeline  memory over time

Imports `graph`, `plan`, `memory`, `views`, `page` and `inputs`.
"""
