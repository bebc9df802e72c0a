"""Saves a graph: its kernels as `jax.export` makes them, its dataflow as text, and how it is called.

%0 = flow.kernel @step_0(%x)   -->   kernels/0 for any devices of the platforms; the kernel's text has no body
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from jax import export
from xdsl.dialects.func import FuncOp

from ....dialects.array import MESH
from ....dialects.flow import KernelOp
from ....dialects.ground.errors import Error, did_you_mean
from ....dialects.ground.validation import refused, shortened
from ....dialects.module_op import Module
from ....dialects.op_text import array_types
from ...inputs.checks import shown
from ...inputs.lines import at_line
from ...inputs.names import Patterns
from ...jax_private import RELEASE, jax
from ...run.callbacks import needs_python
from ...run.extended_shard_map import described, on_no_mesh, on_own_devices
from ...trace.trace import Traced
from ...views.progress import progress
from ..module import GraphModule, mesh_at, name_of, program_key, program_of
from ..travel import TravelForm
from .call import SavedCall
from .file import written

FORMAT = 1
"""The number of this form of files. Another one cannot be read."""

PLATFORMS = ("cpu", "tpu", "cuda", "rocm")

_STABLE = export.DisabledSafetyCheck.custom_call("LayoutConstraint")
"""A call by which Fourier transforms ask XLA for a layout. XLA has had it for years, but JAX does not promise it."""


def save(graph: GraphModule, path: object, platforms: Sequence[str] | None, donate: Patterns) -> None:
    """Writes a graph to a file. Raises Error for a graph that cannot be saved, with the line or the kernel."""
    traced = graph.traced
    if traced is None:
        helps = ["save what `plan.lower` or `program.graph` made", "a saved program is a file: copy it"]
        raise Error("a graph that was read from text or from a file cannot be saved", helps=helps)
    names, call = _checked(platforms), SavedCall.of(traced, sorted(traced.donates(donate)))
    _check_callbacks(graph, traced)
    kernels = kernels_of(graph)
    parts = dict[str, bytes]()
    with progress(f"saving {graph.name}", len(kernels)) as step:
        for number, op in enumerate(kernels.values()):
            parts[f"kernels/{number}"] = bytes(_exported(graph, op, names).serialize())
            step()
    about = {"format": FORMAT, "jax": RELEASE, "call": call.to_json()}
    parts = {"program.json": json.dumps(about, indent=1).encode(), "graph.mlir": _outline(graph).encode(), **parts}
    written(path, parts, [np.asarray(const) for const in traced.consts])


def kernels_of(graph: GraphModule) -> Mapping[Hashable, KernelOp]:
    """The kernels that have a program of their own: the first of those that share one, in order of issue."""
    found = dict[Hashable, KernelOp]()
    for op in graph.op.body.block.ops:
        if isinstance(op, KernelOp):
            found.setdefault(program_key(op), op)
    return found


def _exported(graph: GraphModule, op: KernelOp, platforms: Sequence[str] | None) -> export.Exported:
    mesh = mesh_at(graph, op)
    there = described(mesh)
    takes, gives = ([TravelForm.of(type, mesh, there) for type in array_types(side)] for side in (op.operands, op.results))
    with on_own_devices(), on_no_mesh():
        try:
            # Without arguments, only the results say how many devices there are.
            ends = tuple(form.sharding for form in gives) if mesh else None
            program = jax.jit(program_of(graph, op, takes, gives, there), out_shardings=ends)
            made = export.export(program, platforms=platforms, disabled_checks=[_STABLE])
            return made(*(form.struct for form in takes))
        except (ValueError, NotImplementedError) as error:
            title = f"JAX cannot export `{name_of(op)}` of `{graph.name}`"
            raise Error(title, notes=[f"it says: {shortened(' '.join(str(error).split()), 400)}"]) from error


def _outline(graph: GraphModule) -> str:
    """The text of a graph in which kernels have no bodies."""
    kernels = list[FuncOp]()
    for name, kernel in graph.kernels.items():
        made = FuncOp.external(name, kernel.function_type.inputs.data, kernel.function_type.outputs.data)
        if MESH in kernel.attributes:
            made.attributes[MESH] = kernel.attributes[MESH]
        kernels.append(made)
    module = Module([graph.op.clone(), *kernels])
    module.attributes.update(graph.module.attributes)
    return str(module) + "\n"


def _checked(platforms: Sequence[str] | None) -> Sequence[str] | None:
    """Checks the names of platforms. Raises Error for others."""
    if platforms is None:
        return None
    if not platforms:
        raise refused("platforms", "a list of platforms", platforms, 'write platforms=["cpu", "tpu"]')
    for each in platforms:
        if each not in PLATFORMS:
            close = ["JAX's `gpu` is cuda or rocm"] if each == "gpu" else did_you_mean(each, PLATFORMS)
            helps = [*close, f"they are {', '.join(PLATFORMS)}"]
            raise Error(f"`platforms` takes names of platforms, got {shown(each)}", helps=helps)
    return platforms


def _check_callbacks(graph: GraphModule, traced: Traced) -> None:
    """Raises Error for a kernel that calls a Python function: a process without it cannot run the kernel."""
    name = next((name for name, kernel in graph.kernels.items() if any(map(needs_python, kernel.walk()))), None)
    if name is not None:
        lines = (traced.sources.get(op) for op in traced.main.walk() if needs_python(op))
        line = next(filter(None, lines), None)
        helps = ["leave it out of the program that is saved: it is needed where the program is debugged"]
        title = f"a program that calls Python cannot be saved: `{name}` has a callback{at_line(line)}"
        raise Error(title, location=line.location() if line else None, helps=helps)
