"""Loads a saved program: a graph on devices, called like the function that was saved.

pt.load_compiled("step.partita-program")   -->   a callable, in a process that has none of the model's code
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from jax import Array, export
from jax.sharding import AbstractMesh, Mesh as DeviceMesh
from xdsl.ir import Operation

from ....dialects import context
from ....dialects.flow import KernelOp
from ....dialects.ground.errors import Error, first_line
from ....dialects.ground.validation import checked
from ....dialects.program_text import read_module
from ...inputs.files import shown_path
from ...jax_private import RELEASE, jax
from ..module import Caller, GraphModule, name_of, program_key
from ..run import CompiledGraph, Placed
from ..travel import TravelForm
from .call import SavedCall
from .file import SavedFile, read
from .save import FORMAT, kernels_of


@dataclass(frozen=True, eq=False)
class SavedGraph(GraphModule):
    """A graph whose kernels are exported programs."""

    call: SavedCall | None = None
    exported: Mapping[Hashable, export.Exported] | None = None

    @property
    def caller(self) -> Caller | None:
        return self.call

    def program(
        self, op: Operation, takes: Sequence[TravelForm], gives: Sequence[TravelForm], there: DeviceMesh | AbstractMesh
    ) -> Callable[..., Sequence[Array]]:
        if not isinstance(op, KernelOp) or self.exported is None:
            return super().program(op, takes, gives, there)
        exported = self.exported[program_key(op)]
        # Any: JAX's devices have no types.
        platform = cast(Any, there).devices.flat[0].platform
        if platform not in exported.platforms and not (platform == "gpu" and {"cuda", "rocm"} & {*exported.platforms}):
            title = f"`{self.name}` was saved for {', '.join(exported.platforms)}, and these devices are {platform}"
            raise Error(title, helps=[f'save it for both: platforms=["{exported.platforms[0]}", "{platform}"]'])

        def run(*arrays: Array) -> Sequence[Array]:
            results = cast("Sequence[Array]", cast(Any, exported).call(*arrays))
            return [jax.lax.with_sharding_constraint(each, form.sharding) for each, form in zip(results, gives, strict=True)]

        run.__name__ = name_of(op)
        return run


@checked
def load_compiled(path: str, devices: Placed = None, like: object = None) -> CompiledGraph:
    """A program that `compiled.save` or `graph.save` wrote, as a callable on devices.

    It takes the arguments of the function that was saved: trees whose leaves have the same names, in which a dict may stand for
    a class of the model. Results are dicts, lists and tuples or, with `like`, trees like that one. Arrays of NumPy are placed
    as the program wants them. `devices` are those of its device set, by default the first ones, or of several sets by name.
    Raises Error for a file that is damaged or was written by another version, and if there are too few devices.

        compiled.save("step.partita-program")   -->   step = pt.load_compiled("step.partita-program"); step(params, batch)
    """
    graph = _graph(read(path))
    if like is not None and graph.call is not None:
        graph = replace(graph, call=graph.call.returning(like))
    return CompiledGraph(graph, devices)


def _graph(file: SavedFile) -> SavedGraph:
    about = json.loads(file.parts.get("program.json", b"{}"))
    if about.get("format") != FORMAT:
        title = f"{shown_path(file.path)} has another form than this version of Partita reads"
        notes = [f"it has number {about.get('format')}, and this version reads number {FORMAT}"]
        raise Error(title, notes=notes, helps=["load it with the version that saved it, or save it again"])
    module = read_module(context(), file.parts["graph.mlir"].decode(), "graph")
    graph = SavedGraph(module, call=SavedCall.of_json(about["call"], file.arrays))
    try:
        made = {key: export.deserialize(bytearray(file.parts[f"kernels/{at}"])) for at, key in enumerate(kernels_of(graph))}
    except (ValueError, NotImplementedError) as error:
        title = f"{shown_path(file.path)} was saved with JAX {about['jax']}, which JAX {RELEASE} cannot read"
        notes = [f"JAX says: {first_line(error)}"]
        raise Error(title, notes=notes, helps=["save it again, with this version of JAX"]) from error
    return replace(graph, exported=made)
