"""From a JAX function to devices.

Data flows from the bottom of this list to the top, and each folder imports only those below it:

    cli        the commands `partita` and `partita-opt`
    shell      `partita shell`: a session of tactics and questions, in a terminal or from a script
    testing    plan files in the tests of a user: a fixture of pytest
    programs   programs of several kernels, each on a device set: `kernel`, `program`
    api        plans, tactics, `jit`, `load`: what `import partita` shows of one plan
    report     a plan as one page for a browser
    graph      a plan as a dataflow graph of kernels, and how it runs node by node
    run        a plan as one function on devices, its derivatives, and the comparison with the original
    answers    the questions about a whole plan that are answered in a text
    advice     what could be better in a plan, and what to do about it
    structure  what the program of a plan looks like
    cost       what a call of a plan sends, computes and stores
    plan       what a plan is, and how tactics make it
    page       a page for a browser, into which data is put
    views      how what a plan answers shows itself: text, tables, HTML
    notation   programs in index notation: from text to a function, and back
    trace      from a JAX function to a program
    define     ops that users define, and how they are tried
    ops        one op, between JAX and the IR
    inputs     what people write, checked: names, arguments, dims, source lines

`jax_private` is the one place that imports private parts of JAX, and that knows how its versions differ. `gc_pause` runs a
pipeline without the cyclic collector.
"""
