"""The files that everything else imports.

    errors          errors with a place, notes and a cure; warnings at the user's line
    amounts         counts, bytes and flops in sentences
    validation      what a caller gave, checked
    interned        equal terms are one object
    argument_names  the names of a program's arguments and results, as attributes
    dtypes          element types and their short names
    monoids         what folds are made of

Imports nothing of the project.
"""
