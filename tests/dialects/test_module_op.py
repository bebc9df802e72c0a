"""A module's text, which a printer of its own writes."""

import jax
import numpy as np
from xdsl.ir import Operation

import partita as pt


def test_a_module_prints_as_xdsl_prints_it() -> None:
    tree = {name: np.ones((8, 8), np.float32) for name in ('say "w"', "back\\slash", "größe", "tab\tnull\0", "")}

    def function(tree: dict[str, jax.Array]) -> list[jax.Array]:
        return [leaf @ leaf.T for leaf in tree.values()]

    plan = pt.plan(function, pt.Mesh(data=4, model=2), tree).apply(pt.Tile({"tree/*": 0}, "data"))
    for module in (plan.ir(), plan.ir(fused=False), plan.spmd(), plan.lower("collective").module):
        assert str(module) == Operation.__str__(module)
