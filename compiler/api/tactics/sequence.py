"""Sequence and context parallelism: positions are tiled over the devices of an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....dialects.ground.amounts import counted
from ....dialects.ground.errors import Error
from ....rewrites.program.program import ValueId
from ...inputs.checks import checked_axis
from ...inputs.message_language import step
from ...inputs.names import Patterns, as_patterns, trees
from ...plan.addresses import BORDERS
from ...plan.range_names import LENGTH
from ...plan.seeds import Seed
from ...structure.attention_keys import keys
from ...structure.products import Passes
from ...structure.residual_stream import dim_classes, stream
from ..plan import Plan
from .base import Strategy, at_dims


@dataclass(frozen=True, repr=False)
class SequenceParallel(Strategy):
    """Tile the activations between Megatron's parts on the same axis, along the positions (arXiv 2205.05198).

    Apply it after `Megatron`. What its sums add up to is tiled, forward and backward, and what follows from it: norms, dropout
    and the residual are computed in parts, and stored in parts. Each all_reduce becomes a reduce_scatter, and an all_gather
    comes before each part: for L layers `4·L` of each instead of `4·L` all_reduces. Where the backward pass reads what a loop
    has stored, or what it computes again, it gathers that again: `6·L` all_gathers.

    `dim` is a number or the name of a range; without it, the range `length`, or dim 1. With `dim=-1` the width is tiled. An
    encoder and a decoder have each their own positions. `values` names parameters, and what their products add up to is tiled;
    or it names computed values and inputs, such as tags, which are then tiled themselves.

    Raises Error if no sum over the axis is found, and for a dim that the axis does not divide.

        SequenceParallel("model"):   x + h @ w2: all_reduce   -->   x: f32[8, model*256, 512], reduce_scatter; all_gather
    """

    axis: str
    dim: int | str | None = None

    def claims(self, plan: Plan) -> Iterator[Seed]:
        names, axis = plan.source.addresses.names, checked_axis(self.axis)
        named = {value: name for name, value in plan.source.addresses.chosen.items() if is_stream(plan, value)}
        found = dict.fromkeys(named, ()) or stream(plan, axis)
        if not found and plan.mesh[axis] > 1:
            placed = step(f'Megatron("{axis}")')
            helps = [f"apply it after the tactic that places the weights: {placed}", 'or name values: values="x"']
            raise Error(f"`SequenceParallel` finds no sums over `{axis}` of what weights make", helps=helps)
        roots = self.roots(plan, [*found], is_named=bool(named))
        for value, of in found.items():
            dims = [
                dim
                for dim, root in enumerate(class_of_each_dim(plan, value))
                if root in roots.get(dim_classes(plan, value), ())
            ]
            yield from (Seed(value, dim, axis, named.get(value, names[value]), of=of) for dim in dims[:1])

    def roots(self, plan: Plan, values: Sequence[ValueId], is_named: bool) -> dict[frozenset[int], set[int]]:
        """The dim classes to tile, for each kind of value. A later kind takes the classes of earlier ones, if it has them.

        Raises Error for a named value that has no positions, and if none has.
        """
        known, found, names = plan.range_roots.get(LENGTH, -1), dict[frozenset[int], set[int]](), plan.source.addresses.names
        problems: list[Error] = []
        for value in values:
            its, before = class_of_each_dim(plan, value), set[int]().union(*found.values())
            if (of := dim_classes(plan, value)) in found:
                continue
            if shared := before.intersection(its):
                found[of] = shared
            elif self.dim is None and known in its:
                found[of] = {known}
            elif self.dim is None and len(its) < 3:
                title = f"`{names[value]}` has no dim of positions: its shape is {list(plan.source.shape(value))}"
                problems.append(Error(title, helps=["say which dim is tiled: dim=0"]))
            else:
                found[of] = {
                    plan.source.classes.of(value, plan.dim_of(value, 1 if self.dim is None else self.dim, names[value]))
                }
        if problems and (is_named or not found):
            raise problems[0]
        return found


@dataclass(frozen=True, repr=False)
class ContextParallel(Strategy):
    """Tile the positions of everything on an axis; attention gathers keys and values (arXiv 2407.21783, section 3.3.2).

    Every op works on its own positions. Where attention reads all of them, the keys and values are gathered, and the gradients
    of both arrive by a reduce_scatter: for L layers `2·L` all_gathers and `2·L` reduce_scatters, `2·L` all_gathers more if the
    layers are recomputed. The gradient of each of P parameters, and the loss, is one all_reduce: `P + 1`.

    Inputs are tiled on the range `length`, or on `dim` of `inputs`. Of an input that does not divide, such as tokens that serve
    as inputs and as labels, the parts that are read are tiled. Keys and values are found from structure.

    Raises Error if no input has positions.

        ContextParallel("context"):   k: f32[8, context*256, 4, 64] gathered to f32[8, 1024, 4, 64] before q @ k
    """

    axis: str
    inputs: Patterns = ()
    dim: int | str = LENGTH

    def claims(self, plan: Plan) -> Iterator[Seed]:
        axis = checked_axis(self.axis)
        plan.mesh.parts(axis)
        spots = {value: plan.dim_of(value, self.dim, name) for name, value in self.named(plan).items()}
        for value, at in spots.items():
            yield from at_dims(plan, [(value, at)] if self.padded else divisible(plan, value, at, axis), axis)
        roots = dict.fromkeys(plan.source.classes.of(value, at) for value, at in spots.items())
        yield from at_dims(plan, ((value, None) for root in roots for value in keys(plan, root)), axis)

    def named(self, plan: Plan) -> dict[str, ValueId]:
        """The inputs that have positions, by name."""
        if as_patterns(self.inputs):
            return plan.source.addresses.inputs(self.inputs)
        root, names = plan.range_roots.get(LENGTH), plan.source.addresses.names
        found = {
            names[value]: value for value in Passes(plan).inputs if root is not None and root in class_of_each_dim(plan, value)
        }
        if not found:
            inputs = [name for value in Passes(plan).inputs if len(plan.source.shape(value)) > 1 and (name := names[value])]
            known = f"inputs={inputs[0]!r}" if inputs else "inputs=..."
            helps = [f"name them and their dim: {known}, dim=1; the arguments are {trees(plan.arguments())}"]
            raise Error("`ContextParallel` finds no positions: no range of the inputs is the length", helps=helps)
        return found


def class_of_each_dim(plan: Plan, value: ValueId) -> list[int]:
    """The class of each dim of a value."""
    return [plan.source.classes.of(value, dim) for dim in range(len(plan.source.program.shape(value)))]


def is_stream(plan: Plan, value: ValueId) -> bool:
    """Whether a value can be tiled itself: it has dims and is computed, or an input.

    A parameter does not count: it stands for values that are computed from it.
    """
    is_computed = plan.source.program.producer[value] >= 0
    return len(plan.source.shape(value)) > 0 and (is_computed or value in Passes(plan).inputs)


def divisible(plan: Plan, value: ValueId, dim: int, axis: str) -> list[tuple[ValueId, int]]:
    """The value, if the axis divides its dim; otherwise the parts of it that the program reads and that the axis divides."""
    program, root, size = plan.source.program, plan.source.classes.of(value, dim), plan.mesh[axis]
    ahead, found = [(value, dim)], list[tuple[ValueId, int]]()
    for each, at in ahead:
        if program.shape(each)[at] % size == 0:
            found.append((each, at))
            continue
        for node in (program.nodes[number] for number, _ in program.uses[each]):
            parts = node.results if node.signature.shifts or node.passes_on or node.op_name in BORDERS else ()
            spots = (
                (part, class_of_each_dim(plan, part).index(root)) for part in parts if root in class_of_each_dim(plan, part)
            )
            ahead += [spot for spot in spots if spot not in ahead]
    if not found:
        title = (
            f"`{plan.source.addresses.names[value]}` has {counted(program.shape(value)[dim], 'position')}, which do not divide"
        )
        notes = ["nor do the parts of it that the program reads"]
        raise Error(
            f"{title} over `{axis}` ({size} devices)",
            notes=notes,
            helps=[f"pad the sequence to a multiple of {size}", "or have it padded: add padded=True to this tactic"],
        )
    return found
