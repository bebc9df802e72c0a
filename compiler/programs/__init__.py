"""Programs of several kernels, each on a device set of its own, as one dataflow graph.

    kernel   `pt.kernel`: a function on a device set
    program  `pt.program`: a Python function that calls kernels
    calls    a traced program as calls of kernels, and the code between them
    joined   these as one graph: kernels, and what moves between them

Imports `api`, `graph` and `run`.
"""
