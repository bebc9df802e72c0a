"""A Pallas call defines itself: its grid is its index space, and its BlockSpecs say which dims each index moves along.

    grid (4, 2), x in blocks (16, 8) at (i, 0), w in blocks (8, 16) at (0, j), the result in blocks (16, 16) at (i, j)   -->
    pallas_call(x0, x1)   y0[(i b16), (j b16)] = @(x0[(i b16), d0:], x1[d1:, (j b16)])   size b16 = 16

Every step of the grid runs the same kernel, unless the kernel reads its position. So a run of steps along an axis is the
same call with a shorter grid on shorter arrays, if no two of its steps write the same elements:

* the kernel does not read `program_id` of the axis;
* the axis moves block by block along each of its dims, and the blocks fill the dim;
* the axis moves along every result; otherwise its steps would write into one block;
* scratch: if the kernel reads the `program_id` of no outer axis, all sweeps of the inner axes are equal. The first sweep
  starts with uninitialised scratch, so no sweep uses values that another one left.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, starmap
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from ...dialects.ground.errors import Error
from ..jax_private import BlockMapping, GridMapping, ReadEffect, RefEffect, pallas
from ..ops.jax_expansions import equations
from ..ops.params import ArrayLike
from ..ops.prng_keys import is_key

Move: TypeAlias = "tuple[int | None, frozenset[int], int | None]"
"""For a dim: the grid axis that numbers its blocks, all axes on which that number depends, and the elements of a block.

The axis is None if no single axis numbers the blocks, the elements if the dim is not divided into blocks.
"""

_LETTERS = "ijklmnopqrstuvw"
_ASKS = ("program_id", "num_programs")


def text(eqn: JaxprEqn) -> str:
    """The definition of a Pallas call. Raises Error with the reason for a call without one."""
    call = PallasCall(eqn, eqn.params["grid_mapping"], eqn.params["jaxpr"])
    call.check()
    barred = call.barred()
    if placed := {axis for axis in call.axes if axis not in barred}:
        return call.written(placed)
    raise Error("; ".join(f"along {call.name(axis)} {why}" for axis, why in barred.items()) or "its grid is one step")


def block(params: Mapping[str, object], inputs: Sequence[Array], outs: Sequence[ArrayLike]) -> list[Array]:
    """Runs a call on blocks of its operands: the same kernel, with as many steps as the blocks need."""
    mapping = cast(GridMapping, params["grid_mapping"])
    shapes = [*map(np.shape, inputs[mapping.num_index_operands :]), *(shape for _, shape in outs)]
    grid = list(mapping.grid)
    blocks: list[BlockMapping] = []
    for each, shape in zip(mapping.block_mappings, shapes, strict=True):
        for (axis, _, size), whole, own in zip(_moves(each, mapping.grid), each.array_aval.shape, shape, strict=True):
            if axis is not None and size and own != whole:
                grid[axis] = own // size
        blocks.append(each.replace(array_aval=cast(Any, each.array_aval).update(shape=shape)))
    avals = cast("Sequence[ShapedArray]", params["out_avals"])
    results = tuple(cast(Any, aval).update(shape=shape) for aval, (_, shape) in zip(avals, outs, strict=True))
    local = mapping.replace(grid=tuple(grid), block_mappings=tuple(blocks))
    cost, steps, of = cast(Any, params["cost_estimate"]), prod(grid), prod(mapping.grid)
    if cost:
        names = ("flops", "transcendentals", "bytes_accessed", "remote_bytes_transferred")
        cost = type(cost)(**{name: getattr(cost, name) * steps // of for name in names if hasattr(cost, name)})
    changed = {**params, "grid_mapping": local, "out_avals": results, "cost_estimate": cost}
    return list(pallas().pallas_call_p.bind(*inputs, **changed))


def without_steps(eqn: JaxprEqn) -> bool:
    """Whether this is a Pallas call without steps, so that nothing writes its results."""
    return eqn.primitive.name == "pallas_call" and any(n == 0 for n in eqn.params["grid_mapping"].grid if isinstance(n, int))


@dataclass
class PallasCall:
    """One Pallas call. A grid axis is a number."""

    eqn: JaxprEqn
    mapping: GridMapping
    kernel: Jaxpr

    @cached_property
    def axes(self) -> list[int]:
        """The axes with more than one step."""
        return [axis for axis, steps in enumerate(self.mapping.grid) if steps > 1]

    @cached_property
    def own(self) -> list[int]:
        """The axes without those that `vmap` added, as the kernel's author counts them."""
        return [axis for axis in range(len(self.mapping.grid)) if axis not in self.mapping.vmapped_dims]

    def name(self, axis: int) -> str:
        return f"grid axis {self.own.index(axis)}" if axis in self.own else "the axis of `vmap`"

    @cached_property
    def asked(self) -> set[int]:
        """The axes along which the kernel reads its position."""
        return {self.own[eqn.params["axis"]] for eqn in equations(self.kernel) if eqn.primitive.name in _ASKS}

    def check(self) -> None:
        """Raises Error for a call in which no axis can be partitioned."""
        mapping, params = self.mapping, self.eqn.params
        if not mapping.grid:
            raise Error("its kernel runs once, without a grid")
        if mapping.num_dynamic_grid_bounds:
            raise Error("its grid is known only when it runs")
        if params["mesh"] is not None or mapping.grid_names is not None or mapping.local_grid_env is not None:
            raise Error("its grid is a mesh")
        effects = [each for each in (*self.eqn.effects, *self.kernel.effects) if not isinstance(each, RefEffect)]
        if effects:
            raise Error(f"its kernel has an effect (`{type(effects[0]).__name__}`)")
        first = mapping.num_index_operands
        written = [cast(Any, each) for each in self.kernel.effects if not isinstance(each, ReadEffect)]
        read = self.kernel.invars[: first + mapping.num_inputs]
        if params["input_output_aliases"] or any(each.input in read for each in written):
            raise Error("it writes into its operands")
        odd = len(self.eqn.invars) != first + mapping.num_inputs or any(each.transforms for each in mapping.block_mappings)
        if odd or any(is_key(atom.aval) for atom in (*self.eqn.invars, *self.eqn.outvars)):
            raise Error("it has operands that are not arrays in blocks")
        if not all(isinstance(aval.dtype, np.dtype) for aval in mapping.scratch_avals):
            raise Error("it has semaphores")

    def barred(self) -> dict[int, str]:
        """The axes that cannot be placed -> the reason."""
        found: dict[int, str] = {}
        for each in self.mapping.block_mappings:
            found |= {axis: f"the blocks of `{each.origin}` {why}" for axis, why in self.strays(each)}
        for each in self.mapping.block_mappings[self.mapping.num_inputs :]:
            moved = {axis for axis, _, _ in _moves(each, self.mapping.grid)}
            found |= {axis: f"all steps write into one block of `{each.origin}`" for axis in self.axes if axis not in moved}
        for axis in self.axes:
            outside = [other for other in self.axes if other < axis and other in self.asked]
            if self.mapping.scratch_avals and outside:
                found[axis] = f"scratch may be kept for `program_id({self.own.index(outside[0])})`"
            if axis in self.asked:
                found[axis] = f"its kernel asks for `program_id({self.own.index(axis)})`"
        return dict(sorted(found.items()))

    def strays(self, each: BlockMapping) -> Iterator[tuple[int, str]]:
        """The axes along which the blocks of an array are not consecutive, each with the reason."""
        grid, seen = self.mapping.grid, set[int]()
        for (axis, used, size), extent in zip(_moves(each, grid), each.array_aval.shape, strict=True):
            yield from ((other, "are where it computes") for other in used if other != axis)
            if axis is not None and size is None:
                yield axis, "are not whole blocks"
            elif axis is not None and size is not None and grid[axis] * size != extent:
                yield axis, f"do not fill its {extent} elements"
            if axis in seen:
                yield axis, "move along two dims"
            seen |= used

    def written(self, placed: set[int]) -> str:
        """The definition in which the `placed` axes are indices."""
        mapping, sizes, fresh = self.mapping, dict[str, int](), count()

        def term(axis: int | None, _: frozenset[int], size: int | None) -> str:
            if axis is None or axis not in placed:
                return f"d{next(fresh)}:"
            if size is None or size == 1:
                return _LETTERS[axis]
            sizes[f"b{size}"] = size
            return f"({_LETTERS[axis]} b{size})"

        def array(name: str, dims: Iterable[Move]) -> str:
            return f"{name}[{', '.join(starmap(term, dims))}]"

        scalars: list[list[Move]] = [
            [(None, frozenset(), None)] * len(aval.shape) for aval in mapping.index_map_avals[len(mapping.grid) :]
        ]
        blocks = [_moves(each, mapping.grid) for each in mapping.block_mappings]
        ins, outs = [*scalars, *blocks[: mapping.num_inputs]], blocks[mapping.num_inputs :]
        reads = ", ".join(array(f"x{number}", dims) for number, dims in enumerate(ins))
        results = ", ".join(array(f"y{number}", dims) for number, dims in enumerate(outs))
        names = ", ".join(f"x{number}" for number in range(len(ins)))
        clause = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        return f"pallas_call({names})   {results} = @({reads})" + (f"   size {clause}" if sizes else "")


def _size(block: object) -> int | None:
    if isinstance(block, pallas().Squeezed):
        return 1
    return cast(Any, block).block_size if isinstance(block, pallas().Blocked) else None


def _moves(each: BlockMapping, grid: Sequence[int]) -> list[Move]:
    """How the blocks of an array move along each of its dims."""
    jaxpr = each.index_map_jaxpr.jaxpr
    none = frozenset[int]()
    steps = {var: axis for axis, var in enumerate(jaxpr.invars[: len(grid)])}
    depends = {var: frozenset({axis}) if grid[axis] > 1 else none for var, axis in steps.items()}
    for eqn in jaxpr.eqns:
        used = none.union(*(depends.get(atom, none) for atom in eqn.invars if not isinstance(atom, Literal)))
        depends |= dict.fromkeys(eqn.outvars, used)
    found = [none if isinstance(atom, Literal) else depends.get(atom, none) for atom in jaxpr.outvars]
    sizes = [*map(_size, each.block_shape)]
    if len(found) != len(sizes):
        # A slice has two numbers for a dim.
        return [(None, none.union(*found), size) for size in sizes]
    exact = [steps[atom] if not isinstance(atom, Literal) and atom in steps else None for atom in jaxpr.outvars]
    return [(axis if used else None, used, size) for axis, used, size in zip(exact, found, sizes, strict=True)]
