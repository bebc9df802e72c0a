"""The dataflow graph of a plan: kernels, redistributions, and the values between them.

    module    the graph as its module in the flow dialect
    nodes     nodes and edges, read off that module
    text      JSON and Graphviz
    dataflow  the graph as a page draws it: what waits for what, on which device set
    travel    how values go from node to node
    run       the graph on devices, node by node
    saved     the graph in a file, for processes that lack the model's code
    graph     `Graph`: the module, with these as methods

Imports `run`, `plan`, `page` and `trace`.
"""
