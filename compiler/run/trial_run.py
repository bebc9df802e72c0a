"""Tries a plan on the user's arrays or on random ones: compares each result with that of the unpartitioned run.

inputs(plan, ["x=x.npy"], seed=0)    -->    the leaves of the arguments, x from its file
errors(plan, leaves)                 -->    {"result": 4.7e-07}
"""

import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from jax import Array
from jax.core import ShapedArray

from ...dialects.ground.amounts import there_are
from ...dialects.ground.errors import Error
from ..inputs.arguments import passed
from ..inputs.files import regular
from ..inputs.names import match
from ..jax_private import jax, jnp, tree
from ..ops.prng_keys import aval_text, is_key
from ..plan.state import State
from .compare import Run, differences


def host_devices(count: int) -> None:
    """Requests this many host devices, unless JAX is initialised already, or the environment sets the number."""
    with suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", count)


def enough_devices(plan: State) -> None:
    """Raises Error, with the option to use, if the plan's mesh has more devices than there are."""
    wanted, there = plan.mesh.size, len(jax.devices())
    if wanted > there:
        helps = [f"on a host without accelerators: --devices {wanted}", "or try it on a smaller mesh: --mesh data=2"]
        raise Error(f"the mesh {plan.mesh} needs {wanted} devices, but {there_are(there)}", helps=helps)


def input_leaves(plan: State, given: Sequence[str], seed: int) -> list[Array | np.ndarray]:
    """The leaves of the arguments: read from files, `x=x.npy` or `all.npz`, otherwise random."""
    traced, files = plan.source.traced, read_arrays(given)
    avals = dict(zip(traced.arg_names, traced.in_avals, strict=False))
    for name, array in files.items():
        match([name], avals, what="argument")
        if array.shape != avals[name].shape:
            title = f"argument `{name}` of `{traced.name}` is {aval_text(avals[name])}, and its file holds {list(array.shape)}"
            help = "give an array of that shape, or none: arguments without a file are random"
            raise traced.function.error(title, help, at=name)
    random = np.random.default_rng(seed)
    return [files[name] if name in files else drawn(random, aval) for name, aval in avals.items()]


def read_arrays(given: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Reads arrays from files, by name."""
    found: dict[str, np.ndarray] = {}
    for each in given:
        name, equals, file = each.rpartition("=")
        loaded = _loaded(regular(file, "give --input x=x.npy, or --input arrays.npz"))
        if equals and isinstance(loaded, np.ndarray):
            found[name] = loaded
        elif not equals and not isinstance(loaded, np.ndarray):
            found |= loaded
        else:
            kind = "one array" if isinstance(loaded, np.ndarray) else "several arrays"
            helps = ["write --input x=x.npy for one array, and --input arrays.npz for several by their names"]
            raise Error(f"`{Path(file).name}` holds {kind}", helps=helps)
    return found


# Any: an array, or a dict of arrays.
def _loaded(file: Path) -> Any:
    """Loads a file: one array, or several by name."""
    try:
        with file.open("rb") as stream:
            loaded: Any = np.load(stream, allow_pickle=False)
            return loaded if hasattr(loaded, "shape") else {key: loaded[key] for key in loaded.files}
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise Error(f"`{file}` cannot be read: {error}", helps=["give --input x=x.npy, or --input arrays.npz"]) from None


def drawn(random: np.random.Generator, aval: ShapedArray) -> Array:
    """Draws a random array: small floats, small integers, booleans, or keys."""
    if is_key(aval):
        return jax.random.split(jax.random.key(int(random.integers(1 << 30))), aval.shape) if aval.shape else jax.random.key(0)
    dtype: Any = jnp.dtype(aval.dtype)
    if jnp.issubdtype(dtype, jnp.inexact):
        return jnp.asarray(random.standard_normal(aval.shape) / max((1, *aval.shape)) ** 0.5, dtype)
    return jnp.asarray(random.integers(0, 2 if dtype.kind == "b" else 8, aval.shape), dtype)


def errors(plan: State, leaves: Sequence[Array | np.ndarray], run: Callable[[], Run] | None = None) -> dict[str, float]:
    """For each result, the difference between the partitioned run on these arrays and the original.

    `run` makes what runs the plan, if that is not `Compiled`.
    """
    traced = plan.source.traced
    values = tree.tree_unflatten(traced.in_tree, leaves)
    bound = passed(traced.function.signature, {**dict(zip(traced.arguments, values, strict=True)), **traced.static})
    return differences(plan, bound.args, bound.kwargs, run)
