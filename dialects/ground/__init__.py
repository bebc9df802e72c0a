"""The files that everything else imports.

    errors      errors with a place, notes and a cure; warnings at the user's line
    english     numbers and lists in sentences
    validation  what a caller gave, checked
    interned    equal terms are one object
    names       the names of arguments and results on ops
    dtypes      element types and their short names
    monoids     what folds are made of

Imports nothing of the project.
"""
