"""The program as flat tables, built once and shared by all plans.

    flatten            from the xDSL module to the tables
    program            the tables: nodes, values, regions, uses
    breadth_first      breadth-first walks along the program
    in_order           walks in program order, with what is met on the way
    union_find         numbers that are joined into sets
    independent_parts  parts of the program that share no values
    run_counts         how often each op runs, and in which branches and loops
    dim_classes        dims that the definitions identify
    shard_maps         ops with their own mesh axes
    single_device_ops  ops that run once, on one device, for all

Imports only `dialects`.
"""
