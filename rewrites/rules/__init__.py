"""The laws and their language.

    *.rules      the laws, one a line, by subject
    parse        a file to rules, by the grammar `rules.lark`
      rule       a rule: two terms and a condition
    compile      rules to Python closures, indexed by the operation at the root
      terms      what a rule sees of a term
      firing     how often each rule has fired
    heads        which operations rules may have, and what runs them
    files        each file of rules, loaded when it is first used

Imports only `errors` of `dialects`.
"""
