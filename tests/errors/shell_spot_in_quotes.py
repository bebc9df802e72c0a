"""A session in which the quotes of a name hold its dim too."""

import jax
import numpy as np

import partita as pt
from partita.compiler.shell.run_line import do
from partita.compiler.shell.session import Session
from partita.compiler.shell.typed_line import Typed


def double(params: dict[str, jax.Array]) -> jax.Array:
    return params["head"] * 2


plan = pt.plan(double, pt.Mesh(model=2), {"head": np.ones((4, 4), np.float32)})
do(Session.start(plan), Typed('tile "params/head.1" @model'))
