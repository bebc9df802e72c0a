"""The program as flat tables, built once and shared by all plans.

    flatten        from the xDSL module to the tables
    program        the tables: nodes, values, regions, uses
    reached        walks along the program, step by step
    parts          which values share ops, and which never meet
    executions     how often each op runs, and in which branches and loops
    dim_classes    dims that the definitions identify
    shard_maps     ops with their own mesh axes
    runs_once      ops that run once, on one device, for all

Imports only `dialects`.
"""
