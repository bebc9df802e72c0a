"""`partita shell`: tactics as a conversation. A session of statements and commands, in a terminal or from a script.

    session      branches of plans, each with the steps that were undone; immutable
    typed        a line, its commands and their words, and errors that point into it
    dialogue     runs a line: commands, or tactics
    language     how answers cite tactics and commands: as lines of the shell
    commands     the table of commands
      looking    commands that look at the plan
      moving     undo, redo, branches, ways out of conflicts, plan files
      running    lowering, and runs on random arrays
      helping    the commands `help`, `clear` and `quit`
      tactics    statements of `plan` blocks, and calls
    forms        the lowered forms of a plan
    answers      the text that a command answers, and the prompt
      changes    the changes of a step
    completion   the words that can follow the typed ones
      names      the names of a program as a tree
    script       the lines of a file, with their answers, as text or as a picture
    screen       the greeting of a session in a terminal, and long lines
    terminal     a session by prompt_toolkit, with colours and completion
      colours    a colour for each axis of the mesh

Imports `api` and everything below it; only `terminal` imports prompt_toolkit.
"""
