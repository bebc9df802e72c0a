"""`partita shell`: tactics as a conversation. A session of statements and commands, in a terminal or from a script.

    session      branches of plans, each with what was undone; immutable
    typed        a line, its commands and their words, and errors that point into it
    dialogue     what a line does: commands, or tactics
    language     what texts tell the reader to type: lines of the shell
    commands     the table of commands
      looking    those that look at the plan
      moving     undo, redo, branches, ways out of conflicts, plan files
      running    lowering, and runs on random arrays
      helping    what there is
      tactics    statements of `plan` blocks, and calls
    forms        the lowered forms of a plan
    answers      the text that a command answers, and the prompt
      changes    what a step has changed
    completion   what can follow what is typed
      names      the names of a program as a tree
    script       the lines of a file, with their answers, as text or as a picture
    screen       what a session in a terminal begins with, and long lines
    terminal     the same by prompt_toolkit, with colours and completion
      colours    a colour for each axis of the mesh

Imports `api` and everything below it; only `terminal` imports prompt_toolkit.
"""
