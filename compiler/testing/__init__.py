"""Plan files in a user's own tests.

    plugin      the fixture `plan_file` and the option `--update-plans` of pytest, which finds it by itself
    plan_files  a plan beside its file: what is different, by which tactic, and what to do

Imports `api` and everything below it; `plugin` imports it when a test asks for it.
"""
