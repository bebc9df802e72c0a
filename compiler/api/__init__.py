"""The public interface: what `import partita` exports, built on the folders below.

    plan              `pt.plan` and `Plan`: the data of a plan, with every answer as a method
    tactics           a folder: the library's tactics; each registers itself
    tactic_text       the text of tactics, read back
    config_file       `pt.tactics_from`: tactics of a config file
    replay            `pt.replay`: a trace or a plan file, applied again, and what has changed since it was saved
    jit               `pt.jit`: a plan for each kind of arguments, compiled
    notation          `pt.load` and `pt.parse`
      notation_plans  annotations and `plan` blocks as tactics

Imports everything below it; only the commands import it.
"""
