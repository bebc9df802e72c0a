"""From a JAX function to a program.

```
trace               traces the function, and records how it is called
importer            turns the jaxpr into operations, in one pass
  expansions        primitives that are retraced into others (`custom_reduce`, `vmapped_while`)
  why_whole         why some primitives run unpartitioned
scopes              the names of values, from tags and name scopes
coverage            how each JAX primitive is handled, as a table
```

Imports `define`, `ops` and `inputs`. Runs nothing.
"""
