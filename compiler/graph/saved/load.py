"""Loads a saved program: a graph on devices, called like the function that was saved.

pt.load_compiled("step.partita-program")   -->   a callable, in a process that has none of the model's code
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path

from jax import export

from ....dialects import context
from ....dialects.flow import KernelOp
from ....dialects.ground.errors import Error, first_line
from ....dialects.ground.validation import checked
from ....dialects.program_text import read_module
from ...inputs.files import path_of, shown_path
from ...jax_private import RELEASE, jax
from ..module import GraphModule, name_of
from ..run import CompiledGraph, Placed
from .call import SavedCall, check_ends
from .file import SavedFile, read
from .save import FORMAT, kernels_of


@checked
def load_compiled(path: str | Path, devices: Placed = None, like: object = None) -> CompiledGraph:
    """A program that `compiled.save` or `graph.save` wrote, as a callable on devices.

    It takes the arguments of the function that was saved: trees whose leaves have the same names, in which a dict may stand for
    a class of the model. Results are dicts, lists and tuples or, with `like`, trees like that one. Arrays of NumPy are placed
    as the program wants them. `devices` are those of its device set, by default the first ones, or of several sets by name.
    Raises Error for a file that is damaged or was written by another version, and if there are too few devices.

        compiled.save("step.partita-program")   -->   step = pt.load_compiled("step.partita-program"); step(params, batch)
    """
    graph, call = _graph(path)
    saved = call if like is None else call.returning(like)
    return CompiledGraph(replace(graph, saved=saved), devices, tuple(call.donated))


def _graph(path: object) -> tuple[GraphModule, SavedCall]:
    """The graph of a file, and how it is called. Raises Error for a file of another form, and one of a JAX too old or new."""
    try:
        file = read(path)
        about = json.loads(file.parts["program.json"])
        if about["format"] != FORMAT:
            title = f"{shown_path(file.path)} has another form than this version of Partita reads"
            notes = [f"it has number {about['format']}, and this version reads number {FORMAT}"]
            raise Error(title, notes=notes, helps=["load it with the version that saved it, or save it again"])
        module = read_module(context(), file.parts["graph.mlir"].decode(), "graph")
        module.verify()
        graph, call = GraphModule(module), SavedCall.of_json(about["call"], file.arrays)
        check_ends(call, graph)
        return replace(graph, exported=_kernels(file, about["jax"], kernels_of(graph))), call
    except Error:
        raise
    except Exception as error:
        # The checksum is right, so somebody has made the file on purpose.
        raise _of_no_form(path_of(path), error) from error


def _kernels(file: SavedFile, version: str, kernels: Mapping[Hashable, KernelOp]) -> Mapping[Hashable, export.Exported]:
    """The exported kernels. Raises Error if this JAX cannot read them."""
    found = dict[Hashable, export.Exported]()
    for number, (key, op) in enumerate(kernels.items()):
        try:
            made = export.deserialize(bytearray(file.parts[f"kernels/{number}"]))
        except (ValueError, NotImplementedError) as error:
            title = f"{shown_path(file.path)} was saved with JAX {version}, which JAX {RELEASE} cannot read"
            notes = [f"JAX says: {first_line(error)}"]
            raise Error(title, notes=notes, helps=["save it again, with this version of JAX"]) from error
        if (len(made.in_avals), len(made.out_avals)) != (len(op.operands), len(op.results)):
            raise ValueError(f"`{name_of(op)}` has other arguments or results than the graph says")
        platform = jax.default_backend()
        if platform not in made.platforms and not (platform == "gpu" and {"cuda", "rocm"} & {*made.platforms}):
            title = f"{shown_path(file.path)} was saved for {', '.join(made.platforms)}, and this process has {platform}"
            raise Error(title, helps=[f'save it for both: platforms=["{made.platforms[0]}", "{platform}"]'])
        found[key] = made
    return found


def _of_no_form(path: Path, error: Exception) -> Error:
    title = f"{shown_path(path)} is no saved program of this version of Partita"
    notes = [f"reading it raises {type(error).__name__}: {first_line(error)}"]
    return Error(title, notes=notes, helps=["save it again, or load it with the version that saved it"])
