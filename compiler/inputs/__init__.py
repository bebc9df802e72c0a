"""Checks what users write.

    checks            axes, dims, patterns, flags, meshes, tactics: taken, or an error that says what was expected
    budgets           bounds on bytes, flops and counts: `"<2MiB"`
    names             names of values from paths in trees, and the patterns that match them
    arguments         a function and how it is called; arguments given by number; those that a call may use for its results
    tactic_calls      calls of tactics, as a trace prints them
    files             text files that a user names
    toml_files        config files in TOML, and the place of each value
    string_literals   a text in the user's Python file, and where it is
    lines             the line of the user's program that an operation comes from
    message_language  in which language a text says what to type: Python, or the shell's

Imports only `jax_private` and the ground of `dialects`.
"""
