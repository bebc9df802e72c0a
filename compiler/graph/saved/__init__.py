"""A graph in a file, for processes that lack the model's code: its kernels as JAX exports them, and how it is called.

    file   the file: parts with a checksum over all of them, and arrays beside it
    call   the signature, and the arguments and results by their names
    save   from a graph to a file
    load   from a file to a graph on devices

Nothing in a file is executed when it is read, and no part of it is a pickle.
"""
