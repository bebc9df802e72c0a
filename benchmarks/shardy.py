"""The peer of propagation: Shardy's C++ pipeline on the same program with the same argument shardings.

    python -m benchmarks.shardy 96        # one cold measurement, in seconds, as JSON

The program is `jit(train_step).lower(...)` for eight host devices, its module as XLA would get it; the pass pipeline is
`sdy-propagation-pipeline`, run through jaxlib's own MLIR.
"""

import sys
from time import perf_counter

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxlib.mlir.passmanager import PassManager

from partita.tests.support.models import Adam, Batch, Tree

from .fresh import answer
from .gpt3 import MESH, shapes, train_step

# BP+MP+Z3: the layouts that the plan of `speed` gives to the arguments; `speed` checks that they are the same.
BLOCK = {
    "ln1": {"scale": P(), "bias": P()},
    "wqkv": P("data", None, "model", None),
    "wo": P("model", "data", None),
    "ln2": {"scale": P(), "bias": P()},
    "w1": P("data", "model"),
    "w2": P("model", "data"),
    "b2": P(),
}


def specs(layers: int) -> tuple[Tree, Adam, Batch]:
    """The shardings of the arguments, in their tree."""
    params = {"embed": P("data", None), "blocks": [BLOCK] * layers}
    return params, Adam(params, params, P()), Batch(P("data", None), P("data", None))


def propagate(layers: int) -> dict[str, float]:
    """The seconds of Shardy, and of lowering to its input."""
    mesh = Mesh(np.array(jax.devices()).reshape(*MESH.values()), tuple(MESH))
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs(layers), is_leaf=lambda x: isinstance(x, P))
    start = perf_counter()
    module = jax.jit(train_step, in_shardings=shardings).lower(*shapes(layers)).compiler_ir("stablehlo")
    lowered = perf_counter()
    with module.context:
        PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
    return {"lower": lowered - start, "propagate": perf_counter() - lowered}


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 8)
    answer(**propagate(int(sys.argv[1])))
