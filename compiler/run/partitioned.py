"""A plan as one JAX primitive, so that each of its transformations is a plan of its own.

The derivative of a compiled plan is the plan of the original function's derivative, never the derivative of device-local code.
It follows the same tactics. Tangents and cotangents have the layouts of their primals, and a batch dim is replicated.

    jvp         y = partitioned[f] x                    -->   y, r = partitioned[forward] x
                                                              dy = partitioned_linear[tangent] r dx
    transpose   dy = partitioned_linear[tangent] r dx   -->   cx = partitioned[transposed] r cy
    vmap        y = partitioned[f] x                    -->   y = partitioned[batched] x
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast

from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive
from jax.sharding import AbstractMesh, AxisType, Mesh as DeviceMesh, NamedSharding, PartitionSpec
from xdsl.dialects import func

from ...dialects.layouts import Layout
from ...rewrites.decide.placements import boundary
from ...rewrites.program.program import ValueId
from ..jax_private import (
    ad,
    apply_primitive,
    batching,
    groups_as_lists,
    jax,
    jnp,
    linearize_jaxpr,
    lower_fun,
    mlir,
    varying_axes,
)
from ..ops.prng_keys import physical
from ..plan.derived_plans import Kin, follow
from ..plan.lowering import spmd
from ..plan.state import State
from ..trace.trace import trace
from .device_code import run_local
from .extended_shard_map import Gathered, given, is_inside, on_no_mesh, over_devices, spec, to_program_mesh, typed, varying
from .jaxprs import (
    Flags,
    avals,
    batch_type,
    constants,
    distinct,
    function,
    giving,
    is_smooth,
    making,
    on_arrays,
    which,
)

M = TypeVar("M")
Avals = tuple[ShapedArray, ...]
"""The types of a tangent's results: those of the program's results, on whatever mesh they are."""


class Like(NamedTuple):
    """An argument or result whose layout another program adopts, by its number in `of`; arguments come first.

    `dims` maps each of its dims to a dim of the other one.
    """

    of: Partitioned
    end: int
    dims: tuple[int, ...]

    def batched(self, dim: int | None) -> Like:
        """Returns the same, for an array with the batch as an additional dim."""
        return self if dim is None else self._replace(dims=tuple(at + (at >= dim) for at in self.dims))

    def kin(self) -> Kin:
        return Kin(self.of.plan.table, self.of.values[self.end], self.dims)


@dataclass(frozen=True, slots=True)
class Linearized:
    """A program that also returns the residuals of its tangent; and the tangent, a program of residuals and tangents.

    `varies` says which results have a tangent. `residuals` says which of the arguments and results of `forward` they are.
    """

    forward: Partitioned
    tangent: Partitioned
    varies: Flags
    residuals: tuple[int, ...]


@dataclass(eq=False)
class Partitioned:
    """A program on arrays, planned when it first runs. Its transformations are cached, so each is planned once.

    A program made by a transformation has a jaxpr, and the layouts of its arguments and results, None where propagation
    decides. It follows the tactics of `root`, the plan that it comes from.
    """

    root: State
    mesh: DeviceMesh | AbstractMesh
    """On which devices it runs. An abstract mesh, in a program that is only read, has none."""
    made: ClosedJaxpr | None = None
    likes: Sequence[Like | None] = ()
    gathered: list[Gathered] = field(default_factory=list[Gathered])
    """What calls have gathered: results of the program, of the forward part of its derivative, and of its batches."""
    known: dict[object, object] = field(default_factory=dict[object, object])

    def __repr__(self) -> str:
        return self.root.source.traced.name

    @cached_property
    def plan(self) -> State:
        if self.made is None:
            return self.root.decided
        run = function(self.made)

        def program(*arrays: Array) -> list[Array]:
            return run(*arrays)

        program.__name__ = self.root.source.traced.name
        with on_no_mesh():
            traced = trace(program, *map(physical, avals(self.made)[0]))
        return follow(self.root.decided, traced, [like and like.kin() for like in self.likes])

    @cached_property
    def jaxpr(self) -> ClosedJaxpr:
        """The unpartitioned program. Keys are passed as the arrays that hold them."""
        if self.made is not None:
            return self.made
        traced = self.root.source.traced
        with on_no_mesh():
            return on_arrays(traced.original, [*traced.in_avals, *map(jax.typeof, traced.consts)])

    @cached_property
    def values(self) -> list[ValueId]:
        program = self.plan.source.program
        return [*program.arguments[: len(avals(self.jaxpr)[0])], *program.returned]

    @cached_property
    def ends(self) -> list[Like]:
        """For each argument and result, the layout that transformed programs adopt for what corresponds to it."""
        own = [Like(self, end, tuple(range(aval.ndim))) for end, aval in enumerate(chain(*avals(self.jaxpr)))]
        likes = self.likes or [None] * len(own)
        return [like or each for like, each in zip(likes, own, strict=True)]

    # --- on devices ------------------------------------------------------------------------------------------------

    @cached_property
    def shardings(self) -> tuple[list[NamedSharding], list[NamedSharding]]:
        """The shardings of the arguments, including the arrays that the program closes over, and of the results."""
        program = self.plan.source.program
        return [self.sharding(each) for each in program.arguments], [self.sharding(each) for each in program.returned]

    def sharding(self, value: ValueId) -> NamedSharding:
        """The sharding of a value at the boundary: on the axes of the caller's plan, if they can express it."""
        layout = boundary(self.plan.decisions.placements, value)
        joined = layout.joined(self.root.mesh.places)
        on_whole = all(axis in self.root.mesh.places for axis in joined.axes)
        return (
            NamedSharding(self.mesh, self.spec(value, joined))
            if on_whole
            else NamedSharding(self.there, self.spec(value, layout))
        )

    def spec(self, value: ValueId, layout: Layout) -> PartitionSpec:
        rank = max([len(self.plan.source.shape(value)), *(dim + 1 for dim, _ in layout.factors)])
        return spec(layout, rank)

    @cached_property
    def there(self) -> DeviceMesh:
        """The devices along the axes of the plan's decisions, which may be sub-axes."""
        own = cast(DeviceMesh, self.mesh)
        mesh, devices = self.plan.decided.mesh, own.devices
        if mesh is self.root.mesh:
            return own
        kinds = (AxisType.Auto,) * len(mesh)
        return DeviceMesh(devices.reshape(tuple(mesh.axes.values())), tuple(mesh), axis_types=kinds)

    def lower(self) -> Callable[..., Sequence[Array]]:
        """The device-local function over the mesh. It is lowered once."""
        return self.once(self.mapped)

    def mapped(self) -> Callable[..., Sequence[Array]]:
        main = cast(func.FuncOp, spmd(self.plan).body.block.first_op)
        traced = self.plan.source.traced

        program, placements = self.plan.source.program, self.plan.decisions.placements
        ins, outs = (
            [self.spec(each, boundary(placements, each)) for each in side] for side in (program.arguments, program.returned)
        )
        unread = [arg.index for arg in main.body.block.args if not arg.uses and any(ins[arg.index])]

        def local(*arrays: Array) -> tuple[Array, ...]:
            results = run_local(main.body.block, arrays, traced.foreign)
            return tuple(
                with_unread(results, [arrays[number] for number in unread if arrays[number].size], self.there.axis_names)
            )

        local.__name__ = traced.name
        return over_devices(local, self.there, ins, outs, self.root.source.traced.function.location())

    @cached_property
    def unsplit(self) -> Partitioned:
        """The same program on whole axes: inside of a `shard_map` there are no parts of them."""
        if self.root.decided is self.root:
            return self
        root = replace(self.root, table=replace(self.root.table, may_split=False))
        return Partitioned(root, self.mesh, self.made, self.likes, self.gathered)

    def __call__(self, *arrays: Array) -> list[Array]:
        if isinstance(self.mesh, AbstractMesh):
            return partitioned_p.bind(*arrays, jaxpr=self.jaxpr, program=self)
        if is_inside() and self.unsplit is not self:
            return self.unsplit(*arrays)
        traced = self.plan.source.traced
        captured = traced.consts[len(arrays) - len(traced.in_avals) :]
        ends = self.shardings[1]

        # JAX would take a result to be the same all along the axes of a `shard_map` around.
        vary = frozenset[str]().union(*(varying_axes(jax.typeof(array)) for array in arrays))

        def run(*arrays: Array) -> list[Array]:
            results = self.lower()(*map(given, arrays), *captured)
            made = [to_program_mesh(each, end) for each, end in zip(results, ends, strict=True)]
            self.gathered.extend(lost for _, lost in made if lost is not None)
            return [varying(each, vary) for each, _ in made]

        arrays = tuple(varying(array, vary) for array in arrays)
        return partitioned_p.bind(*arrays, jaxpr=jax.make_jaxpr(run)(*arrays), program=self)

    # --- transformed -----------------------------------------------------------------------------------------------

    def once(self, make: Callable[..., M], *how: object) -> M:
        """Calls a method that makes something of the program, such as a transformation.

        The result is cached, for any mesh of the caller.
        """
        key = make.__name__, *how
        if key not in self.known:
            with on_no_mesh():
                self.known[key] = make(*how)
        return cast(M, self.known[key])

    def derived(self, jaxpr: ClosedJaxpr, likes: Sequence[Like | None], is_call: bool = False) -> Partitioned:
        """Makes a program out of this one. With `is_call`, it reports what it gathers: a tangent or cotangent does not."""
        return Partitioned(self.root, self.mesh, jaxpr, likes, self.gathered if is_call else [])

    def linearized(self, varies: Flags) -> Linearized:
        """Linearizes the program in the arguments that vary.

        It returns each residual once, unless the tangent computes it itself.
        """
        first, count, results = len(self.jaxpr.consts), len(varies), len(avals(self.jaxpr)[1])
        allowed = (False,) * first + (True,) * count
        forward, _, moving, inputs, tangent = linearize_jaxpr(self.jaxpr, varies, allow_fwds=allowed, is_vjp=True)
        kept, places = distinct(forward.jaxpr, results)
        program = self.derived(giving(forward, kept), [*self.ends, *[None] * (len(kept) - results)], is_call=True)
        behind = iter(places)
        found = [next(behind, None) if at is None else at - first - count for at in inputs]
        residuals = tuple(count + at for at in found if at is not None)
        fixed = constants(forward, [number for number, at in enumerate(places, results) if at is None])
        pushed = making(tangent, tuple(at is None for at in found), fixed)
        moved = [end for end, moves in zip(self.ends, (*varies, *moving), strict=True) if moves]
        likes = [*(program.ends[at] for at in residuals), *moved]
        return Linearized(program, self.derived(pushed, likes), tuple(moving), residuals)

    def pushed(self, varies: Flags) -> Partitioned:
        """The program together with its tangent, for programs that JAX differentiates only in forward mode."""
        (ins, outs), run, moved = avals(self.jaxpr), function(self.jaxpr), which(varies)
        smooth = [number for number, aval in enumerate(outs) if is_smooth(aval)]

        def both(*arrays: Array) -> list[Array]:
            def some(*given: Array) -> list[Array]:
                every = dict(enumerate(arrays[: len(ins)])) | dict(zip(moved, given, strict=True))
                return run(*every.values())

            results, tangents = jax.jvp(some, [arrays[number] for number in moved], [*arrays[len(ins) :]])
            return [*results, *(tangents[number] for number in smooth)]

        jaxpr = jax.make_jaxpr(both)(*map(physical, (*ins, *(ins[number] for number in moved))))
        more = [self.ends[number] for number in moved], [self.ends[len(ins) + number] for number in smooth]
        return self.derived(jaxpr, [*self.ends[: len(ins)], *more[0], *self.ends[len(ins) :], *more[1]], is_call=True)

    def transposed(self, linear: Flags, varies: Flags) -> Partitioned:
        """Transposes the program in its linear arguments. The new program takes the other arguments and the cotangents."""
        count, run = len(linear), function(self.jaxpr)
        fixed, moved, given = which(linear, False), which(linear), [count + each for each in which(varies)]
        structs = [physical(aval) for aval in chain(*avals(self.jaxpr))]

        def pull(*arrays: Array) -> list[Array]:
            def push(*tangents: Array) -> list[Array]:
                both = dict(zip((*fixed, *moved), (*arrays[: len(fixed)], *tangents), strict=True))
                results = run(*(both[each] for each in range(count)))
                return [results[each - count] for each in given]

            return list(jax.linear_transpose(push, *(structs[each] for each in moved))(list(arrays[len(fixed) :])))

        jaxpr = jax.make_jaxpr(pull)(*(structs[each] for each in (*fixed, *given)))
        return self.derived(jaxpr, [self.ends[each] for each in (*fixed, *given, *moved)])

    def batched(self, dims: tuple[int | None, ...], size: int) -> Partitioned:
        """Maps the program over a batch. All results have the batch as their first dim."""
        run = jax.vmap(function(self.jaxpr), in_axes=dims, out_axes=0, axis_size=size)
        ins, outs = avals(self.jaxpr)
        structs = zip(map(physical, ins), dims, strict=True)
        shapes = (
            (each.shape if dim is None else (*each.shape[:dim], size, *each.shape[dim:]), each.dtype) for each, dim in structs
        )
        more = [jax.ShapeDtypeStruct(*each) for each in shapes]
        where = (*dims, *[0] * len(outs))
        likes = [end.batched(dim) for end, dim in zip(self.ends, where, strict=True)]
        return self.derived(jax.make_jaxpr(run)(*more), likes, is_call=True)


def with_unread(results: list[Array], unread: Sequence[Array], axes: Sequence[str]) -> list[Array]:
    """Makes the smallest result depend, by a condition that is never true, on arguments that the program does not read.

    XLA would otherwise replicate such an argument, because nothing determines its layout. A barrier would determine it too, but
    with barriers XLA:CPU may give wrong results.
    """
    at = min(
        (number for number, each in enumerate(results) if each.size), key=lambda number: results[number].size, default=None
    )
    if at is None or not unread:
        return results
    never = jax.lax.axis_index(tuple(axes)) < 0
    for each in unread:
        never &= each[(0,) * each.ndim] != 0
    return [*results[:at], jnp.where(never, jnp.zeros_like(results[at]), results[at]), *results[at + 1 :]]


# --- the primitives ----------------------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Array], tangents: Sequence[Array], *, program: Partitioned, **_: object
) -> tuple[list[Array], list[Array]]:
    varies = tuple(type(each) is not ad.Zero for each in tangents)
    moving = [each for each in tangents if type(each) is not ad.Zero]
    outs = avals(program.jaxpr)[1]
    try:
        made: Linearized = program.once(program.linearized, varies)
    except ValueError:
        # JAX has no linear tangent of some primitives, such as a window with a custom combiner.
        smooth = tuple(map(is_smooth, outs))
        together = program.once(program.pushed, varies)(*primals, *moving)
        results, found = together[: len(outs)], iter(together[len(outs) :])
    else:
        smooth, both = made.varies, [*primals, *made.forward(*primals)]
        results = both[len(primals) : len(primals) + len(outs)]
        types = [jax.typeof(each).to_tangent_aval() for each, moves in zip(results, smooth, strict=True) if moves]
        found = iter(linear_p.bind(*(both[at] for at in made.residuals), *moving, program=made.tangent, types=tuple(types)))
    zeros = (ad.Zero(jax.typeof(each).to_tangent_aval()) for each in results)
    return results, [next(found) if moves else zero for moves, zero in zip(smooth, zeros, strict=True)]


def _transpose(cotangents: Sequence[Array], *arrays: Array, program: Partitioned, **_: object) -> list[Array | None]:
    linear: Flags = tuple(bool(ad.is_undefined_primal(each)) for each in arrays)
    varies = tuple(type(each) is not ad.Zero for each in cotangents)
    back: Partitioned = program.once(program.transposed, linear, varies)
    known = (each for each, moves in zip(arrays, linear, strict=True) if not moves)
    found = iter(back(*known, *(each for each in cotangents if type(each) is not ad.Zero)))
    # A cotangent has the type of what it is the cotangent of, also if the plan lays it out otherwise.
    return [typed(next(found), each.aval) if moves else None for each, moves in zip(arrays, linear, strict=True)]


def _batch(
    arrays: Sequence[Array], dims: Sequence[int | None], *, program: Partitioned, types: Avals = (), **params: object
) -> tuple[Sequence[Array], list[int]]:
    size = next(array.shape[dim] for array, dim in zip(arrays, dims, strict=True) if dim is not None)
    made: Partitioned = program.once(program.batched, tuple(dims), size)
    if "jaxpr" in params:
        results = made(*arrays)
    else:
        results = linear_p.bind(*arrays, program=made, types=tuple(batch_type(each, size) for each in types))
    return results, [0] * len(results)


def _run(*arrays: Array, program: Partitioned, types: Avals) -> list[Array]:
    return list(map(typed, program(*arrays), types))


def _lower(ctx: object, *arrays: object, jaxpr: ClosedJaxpr, program: Partitioned) -> object:
    # What JAX compiles around the plan may have other meshes.
    with groups_as_lists():
        return mlir.core_call_lowering(ctx, *arrays, name=repr(program), call_jaxpr=jaxpr)


def _types(
    *_: object, program: Partitioned, jaxpr: ClosedJaxpr | None = None, types: Avals = ()
) -> tuple[Sequence[ShapedArray], object]:
    if jaxpr is None:
        return types, program.jaxpr.effects
    return avals(jaxpr)[1], jaxpr.effects


partitioned_p: Any = Primitive("partitioned")
"""Runs a planned program on devices."""
linear_p: Any = Primitive("partitioned_linear")
"""Runs a tangent. It is planned only if it runs: that of a `custom_vjp` cannot run, but is transposed like any other."""

for primitive in (partitioned_p, linear_p):
    primitive.multiple_results = True
    primitive.def_impl(partial(apply_primitive, primitive))
    primitive.def_effectful_abstract_eval(_types)
    ad.primitive_jvps[primitive] = _jvp
    ad.primitive_transposes[primitive] = _transpose
    batching.primitive_batchers[primitive] = _batch
mlir.register_lowering(partitioned_p, _lower)
mlir.register_lowering(linear_p, lower_fun(_run))
