"""The laws and their language.

    *.rules           the laws, one a line, by subject
    parse             a file to rules, by the grammar `rules.lark`
      rule            a rule: two terms and a condition
    compile           rules to Python closures, indexed by the operation at the root, and how often each has fired
    allowed_heads     which operations rules may have, and what runs them
    rule_files        each file of rules, loaded when it is first used

Imports only `errors` of `dialects`.
"""
