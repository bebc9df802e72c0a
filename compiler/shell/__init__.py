"""`partita shell`: tactics as a conversation. A session of statements and commands, in a terminal or from a script.

    session             branches of plans, each with the steps that were undone; immutable
    typed_line          a line, its commands and their words, and errors that point into it
    run_line            runs a line: commands, or tactics
    message_language    how answers cite tactics and commands: as lines of the shell
    command_table       the table of commands
      query_commands    commands that look at the plan
      history_commands  undo, redo, branches, ways out of conflicts, plan files
      run_commands      lowering, and runs on random arrays
      help_commands     the commands `help`, `clear` and `quit`
      typed_tactics     statements of `plan` blocks, and calls
    lowered_forms       the lowered forms of a plan
    answer              what a command answers: the session after it, and a text
      step_changes      the changes of a step
    completion          the words that can follow the typed ones
      name_tree         the names of a program as a tree
    script              the lines of a file, with their answers, as text or as a picture
    screen              the greeting of a session in a terminal, and long lines
    terminal            a session by prompt_toolkit, with colours and completion
      terminal_colours  a colour for each axis of the mesh

Imports `api` and everything below it; only `terminal` imports prompt_toolkit.
"""
