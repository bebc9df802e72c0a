"""The commands `partita` and `partita-opt`.

    main            `partita`: show, lower, explain, run, shell, rules, demo
      target        what a command looks at: a function in a file, a plan, a program in index notation
      processes     `partita run` in several processes
      tables        a plan as tables
      shell         a session in a terminal, from a pipe, or as a picture, for `partita shell`
      rule_listing  the definitions and rules as text, for `partita rules`
    opt             `partita-opt`, the xDSL driver
      universe      its passes, and what xDSL's own tools see of Partita

Imports everything below; nothing imports it.
"""
