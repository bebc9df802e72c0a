"""What may be done to a program: the rules, and the analyses that decide where to use them.

Nothing here knows JAX or devices, and everything here preserves meaning. The room has three parts:

* the rule language. A `*.rules` file is a table of laws, one a line (`rules.lark` is its grammar); `rule_text` reads it into
  the trees of `rule`, `rule_compiler` makes closures of them, indexed by root operation, that rewrite any kind of
  `terms`; `rules` loads a file once, and `firing` counts what each law has done.

      beta:      slice(L, build(L, x))                     => x
      exchange:  slice(a, j, t, all_gather(a, i, s, x))    => all_to_all(a, i, s, j, t, x)    where ...

* redistribution. `redistribute.path` takes a value from one layout to another by the fewest bytes: the collective laws
  rewrite "make it whole and cut it anew" into the `steps` that are left;

* the program. `flatten` makes the tables of `program` from a module, those of a `shard_map` by `own_axes`; `placement` is the
  table of a plan, `propagate` carries claims, `pending` and `decide` say where sums resolve and what is redistributed.
  `constructors`, `localise` and `materialise` write it into the IR, fused by the builder rules as it is built: `lookups`
  counts looked-up indices from a block's first row. `lower` leaves what one device does, `across` makes a scan of
  blocks one of the whole, and `emit` makes the small ops of all of these.
"""
