"""Imports a jaxpr as an xDSL function, in one pass, with one operation for each equation.

Calls are inlined, loops keep their body as a region, and composite primitives are expanded. Everything that depends only on
an equation's parameters and operand types is computed once for all equations that share them: a training step has tens of
thousands of equations, but only hundreds of signatures.

    { lambda ; a:f32[4] b:f32[4]. let c = pjit[jaxpr={ d = mul a b }] ; e = add c 1.0 in (e,) }    -->
    %0 = lax.mul %a, %b : f32[4], f32[4] -> f32[4];  %1 = lax.constant {value = 1.0} : f32[];  %2 = lax.add %0, %1 ...
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias, cast

import jax
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.definitions.registry import definitions
from ...dialects.ground.errors import Error
from ...dialects.lax import OPS, CondOp, ConstantOp, LaxOp, RegionOp, ScanOp, WhileOp, WholeOp, YieldOp
from ...dialects.params import NO_PARAMS, Literal as Value, ParamsAttr, literal as literal_of
from ...dialects.regions import BORDERS
from ...dialects.types import ArrayType
from ..define.by_call import DERIVED, derive
from ..inputs.lines import Origin
from ..jax_private import called, dce_jaxpr, jaxprs_in_params, with_counts
from ..ops.params import Foreign, encode, op_name
from ..ops.primitives import check, name_of
from ..ops.prng_keys import Aval, implementation, is_key, is_void, physical, unwrap
from ..ops.shard_map import Body, dims_of
from .annotations import Annotation, Said, read
from .constants import Constants, Positions
from .expansions import expand
from .vmapped_while import with_one_predicate
from .why_whole import ONCE

Handler: TypeAlias = "Callable[[Importer, JaxprEqn, list[SSAValue], Origin | None], Sequence[SSAValue]]"


@dataclass(slots=True)
class Frame:
    """A block that is being filled: its constants so far, and the arrays that it captures.

    Each captured array is an argument of the block; the first one comes before the argument at `first`.
    """

    block: Block
    first: int
    constants: dict[Hashable, SSAValue] = field(default_factory=dict[Hashable, SSAValue])
    captured: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    arrays: list[Array] = field(default_factory=list[Array])


@dataclass(frozen=True, slots=True)
class Recipe:
    """How equations with one signature are translated: to an operation, or to a program that is inlined instead."""

    op: type[LaxOp]
    params: ParamsAttr
    results: tuple[ArrayType, ...]
    inlined: ClosedJaxpr | None = None
    may_follow: bool = False
    """Whether the results are known if the operands are."""


class Importer:
    """Imports one function. `origins` holds the origin of each operation, `frame.arrays` the captured arrays."""

    def __init__(self, in_avals: Sequence[Aval]) -> None:
        self.types: dict[Aval, ArrayType] = {}
        self.recipes: dict[Hashable, Recipe] = {}
        self.origins: dict[Operation, Origin] = {}
        self.foreign = Foreign()
        self.frame = Frame(Block(arg_types=[self.type(aval) for aval in in_avals]), len(in_avals))
        self.fixed: Origin | None = None
        self.constants = Constants()
        self.annotations: list[Annotation] = []

    def run(self, jaxpr: Jaxpr, inputs: Sequence[SSAValue], call: Origin | None = None) -> list[SSAValue]:
        """Appends the equations of `jaxpr` for these inputs, and returns its results.

        `call` is the call that it is inlined from. Every run has its own environment, because one jaxpr can be the body of
        several calls.
        """
        env: dict[Any, SSAValue] = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))
        for eqn in jaxpr.eqns:
            operands = [self.literal(a, eqn, call) if type(a) is Literal else env[a] for a in eqn.invars]
            handler = _HANDLERS.get(name := name_of(eqn.primitive))
            results = self.plain(name, eqn, operands, call) if handler is None else handler(self, eqn, operands, call)
            for var, value in zip(eqn.outvars, results, strict=True):
                env[var] = value
        return [self.literal(a, None, call) if type(a) is Literal else env[a] for a in jaxpr.outvars]

    def plain(self, name: str, eqn: JaxprEqn, operands: Sequence[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
        """Imports an equation by the recipe of its signature."""
        params, starts = eqn.params, _starts(name, len(operands))
        signature = (eqn.primitive, eqn.ctx, *params, *params.values(), *(atom.aval for atom in eqn.invars))
        if ids := self.positions(starts, operands) if starts else None:
            signature += tuple((each.dtype, each.tobytes()) for each in ids)
        try:
            recipe = self.recipes.get(signature)
        except TypeError:  # a parameter that cannot be hashed
            recipe = self.recipe(eqn, ids)
        else:
            if recipe is None:
                recipe = self.recipes[signature] = self.recipe(eqn, ids)
        if recipe.inlined is not None:
            return self.inline(recipe.inlined, operands, eqn, call)
        made = self.emit(recipe.op, operands, recipe.results, recipe.params, self.origin(eqn, call))
        if recipe.may_follow:
            self.constants.made(operands, made)
        wanted = params.get("out_sharding") or params.get("sharding")
        if wanted is None:
            return made
        said = read(wanted, len(cast(ArrayType, made[0].type).shape), "out_sharding")
        # JAX gives some ops of a derivative a sharding without axes.
        return [self.annotated(made[0], said, eqn, call), *made[1:]] if said is not None and any(said.dims) else made

    def annotated(self, value: SSAValue, said: Said | None, eqn: JaxprEqn, call: Origin | None) -> SSAValue:
        """Attaches the layout that the program gives a value.

        Returns the result of a new op, because its operand keeps its own layout.
        """
        if said is None or said.says_nothing:
            return value
        if not said.problem:
            params = ParamsAttr.of(layout=said.dims)
            (value,) = self.emit(OPS["constrain"], [value], [value.type], params, self.origin(eqn, call))
        self.annotations.append((value, said))
        return value

    def positions(self, starts: range, operands: Sequence[SSAValue]) -> list[Positions] | None:
        """The positions at which an equation reads or updates an array; None unless all of them follow from literals."""
        found = [each for at in starts if (each := self.constants.of(operands[at])) is not None]
        return found if len(found) == len(starts) else None

    def emit(
        self,
        op: type[Operation],
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        params: ParamsAttr,
        origin: Origin | None,
        blocks: Sequence[Block] = (),
    ) -> Sequence[SSAValue]:
        regions = [Region(block) for block in blocks]
        made = op.create(operands=operands, result_types=results, properties={"params": params}, regions=regions)
        self.frame.block.add_op(made)
        if origin is not None:
            self.origins[made] = origin
        return made.results

    def inline(
        self, closed: ClosedJaxpr, operands: Sequence[SSAValue], eqn: JaxprEqn, call: Origin | None
    ) -> Sequence[SSAValue]:
        """Inlines a program in place of an equation, and gives its operations that equation's origin.

        If the equation holds programs, such as the product and the solver of a linear system, these have lines of their own.
        """
        outer, inputs = self.fixed, [*map(self.capture, closed.consts), *operands]
        origin = self.origin(eqn, call)
        if next(jaxprs_in_params(eqn.params), None) is not None:
            return self.run(closed.jaxpr, inputs, origin)
        self.fixed = origin
        results = self.run(closed.jaxpr, inputs, call)
        self.fixed = outer
        return results

    def end(self, last: Operation) -> None:
        """Ends the current block, and removes the ops that nothing reads because their values are known."""
        block = self.frame.block
        block.add_op(last)
        for op in reversed(list(block.ops)):
            if not any(result.uses for result in op.results) and op.name.removeprefix("lax.") in self.constants.ops:
                self.origins.pop(op, None)
                op.detach()
                op.erase()

    def body(self, closed: ClosedJaxpr, consts: Sequence[SSAValue], call: Origin) -> tuple[Block, list[SSAValue]]:
        """Imports the block of a region. Returns it with the outer values of the arrays that it captures.

        Its first arguments are `consts`, and after them the captured arrays.
        """
        outer, self.frame = (
            self.frame,
            Frame(Block(arg_types=[self.type(var.aval) for var in closed.jaxpr.invars]), len(consts)),
        )
        frame, arguments = self.frame, list(self.frame.block.args)
        self.constants.enter(arguments[: len(consts)], consts)
        inputs = [*map(self.capture, closed.consts), *arguments]
        self.end(YieldOp.create(operands=self.run(closed.jaxpr, inputs, call)))
        self.frame = outer
        return frame.block, [self.capture(array) for array in frame.arrays]

    def origin(self, eqn: JaxprEqn, call: Origin | None) -> Origin:
        return self.fixed or Origin(eqn.source_info, call)

    def results(self, eqn: JaxprEqn) -> tuple[ArrayType, ...]:
        return tuple(self.type(var.aval) for var in eqn.outvars)

    def recipe(self, eqn: JaxprEqn, positions: Sequence[Positions] | None) -> Recipe:
        """Decides how to translate equations with this primitive and these parameters, operand types and constant positions."""
        results, inlined = self.results(eqn), expand(eqn, positions)
        if inlined is not None:
            return Recipe(WholeOp, NO_PARAMS, results, inlined)
        if name_of(eqn.primitive) in DERIVED:
            return self.derived(eqn, results)
        name = op_name(name_of(eqn.primitive))
        definition = definitions.get(name)
        # A scatter that sets has no combiner; with one it is `scatter_apply`, which has no definition.
        applies = name == "scatter" and eqn.params["update_jaxpr"] is not None
        if definition is None or applies or name in _PSEUDO:
            return Recipe(WholeOp, self.whole(eqn), results)
        check(name, eqn)
        params = encode(eqn.params, self.foreign, definition)
        return Recipe(
            OPS[name], params if params.data else NO_PARAMS, results, may_follow=self.constants.may_follow(name, results)
        )

    def derived(self, eqn: JaxprEqn, results: tuple[ArrayType, ...]) -> Recipe:
        """The recipe of a call that defines its own op; otherwise of the program inside of it, or of the unpartitioned call."""
        found = derive(eqn)
        if found.inside is not None:
            return Recipe(WholeOp, NO_PARAMS, results, found.inside)
        if not found.op:
            return Recipe(WholeOp, self.whole(eqn, found.why), results)
        return Recipe(OPS[found.op], encode(eqn.params, self.foreign), results)

    def whole(self, eqn: JaxprEqn, why: str = "") -> ParamsAttr:
        """The parameters of a primitive without a definition: JAX's own, those needed to run it by name, and the reason."""
        name = name_of(eqn.primitive)
        extra: dict[str, Value] = {"primitive": name}
        for key, atoms in (("in_keys", eqn.invars), ("out_keys", eqn.outvars)):
            if any(is_key(atom.aval) for atom in atoms):
                extra[key] = tuple(implementation(atom.aval) if is_key(atom.aval) else None for atom in atoms)
        if eqn.effects or name in ONCE:
            extra["once"] = True
        if why:
            extra["why"] = why
        return ParamsAttr.of(**dict(encode(eqn.params, self.foreign).items()), **extra)

    def type(self, aval: Aval) -> ArrayType:
        """The type of a value. Keys have the type of the `uint32` arrays that hold them."""
        # JAX interns avals, so they are found by identity.
        found = self.types.get(aval)
        if found is None:
            if not hasattr(aval, "shape"):
                helps = ["remove tokens: effects on several devices are unordered"]
                raise Error(f"expected a program of arrays, got a value of type {aval}", helps=helps)
            struct = physical(aval)
            found = self.types[aval] = ArrayType.whole(struct.dtype.name, tuple(map(int, struct.shape)))
        return found

    def literal(self, literal: Literal, eqn: JaxprEqn | None, call: Origin | None) -> SSAValue:
        """The constant for a literal. A block has one for each value and dtype."""
        value = (
            unwrap(literal.val)
            if is_void(literal.aval)
            else np.asarray(literal.val, dtype=cast(ShapedArray, literal.aval).dtype)
        )
        if value.ndim:
            return self.capture(literal.val)
        key = (value.dtype, value.tobytes())
        found = self.frame.constants.get(key)
        if found is None:
            params = ParamsAttr.of(value=literal_of(value))
            origin = self.fixed if eqn is None else self.origin(eqn, call)
            types = (self.type(literal.aval),)
            made = self.emit(ConstantOp, (), types, params, origin)
            if self.constants.may_follow("constant", types):
                self.constants.made((), made)
            found = self.frame.constants[key] = made[0]
        return found

    def capture(self, array: Array) -> SSAValue:
        """Captures an array that the program closes over, as an additional argument of the block."""
        frame = self.frame
        found = frame.captured.get(id(array))
        if found is None:
            found = frame.block.insert_arg(self.type(jax.typeof(array)), frame.first + len(frame.arrays))
            frame.captured[id(array)] = found
            frame.arrays.append(array)
        return found


def imported(closed: ClosedJaxpr) -> Importer:
    """Imports the live part of a jaxpr as one block. The arrays that it captures are the block's last arguments."""
    jaxpr, _ = dce_jaxpr(closed.jaxpr, True, True)
    importer = Importer([var.aval for var in jaxpr.invars])
    arguments = importer.frame.block.args
    consts = [importer.capture(const) for const in closed.consts]
    results = importer.run(jaxpr, [*consts, *arguments])
    importer.end(ReturnOp.create(operands=results))
    return importer


@cache
def _starts(primitive: str, operands: int) -> range:
    """The operands of a primitive that are positions, if it reads or updates windows."""
    definition = definitions.get(op_name(primitive))
    return definition.with_arity(operands, 1).starts if definition is not None and definition.front else range(0)


# Definitions that are not JAX primitives.
_PSEUDO = BORDERS | {"constant", "whole"}


def _call(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Inlines the program that a call runs."""
    jaxpr = called(eqn)
    consts: list[SSAValue] = []
    if isinstance(jaxpr, ClosedJaxpr):
        consts, jaxpr = [self.capture(const) for const in jaxpr.consts], jaxpr.jaxpr
    return self.run(jaxpr, [*consts, *operands], Origin(eqn.source_info, call))


def _remat(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Inlines a region to recompute. If differentiated, its inputs pass a barrier, or XLA would share the recomputation."""
    prevent = eqn.params["prevent_cse"]
    chosen = (prevent,) * len(operands) if isinstance(prevent, bool) else tuple(prevent)
    if eqn.params["differentiated"] and any(chosen):
        behind = [value for value, each in zip(operands, chosen, strict=True) if each]
        types = [value.type for value in behind]
        barred = iter(self.emit(OPS["optimization_barrier"], behind, types, NO_PARAMS, self.origin(eqn, call)))
        operands = [next(barred) if each else value for value, each in zip(operands, chosen, strict=True)]
    return self.run(eqn.params["jaxpr"], operands, Origin(eqn.source_info, call))


def _loop(op: type[RegionOp], kept: Sequence[str], **regions: str) -> Handler:
    """A handler that keeps the regions of a loop. Arrays that a region captures become its last consts."""

    def handle(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
        params = {key: eqn.params[key] for key in kept}
        blocks, given = list[Block](), list[SSAValue]()
        for count, region in regions.items():
            consts, operands = operands[: eqn.params[count]], operands[eqn.params[count] :]
            block, captured = self.body(eqn.params[region], consts, Origin(eqn.source_info, call))
            params[count] = len(consts) + len(captured)
            blocks.append(block)
            given += [*consts, *captured]
        stored = encode(params, self.foreign)
        return self.emit(op, [*given, *operands], self.results(eqn), stored, self.origin(eqn, call), blocks)

    return handle


_counted_scan = _loop(ScanOp, ("length", "num_carry", "reverse", "unroll"), num_consts="jaxpr")
_single_while = _loop(WhileOp, (), cond_nconsts="cond_jaxpr", body_nconsts="body_jaxpr")


def _scan(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    return _counted_scan(self, with_counts(eqn), operands, call)


def _while(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    single = with_one_predicate(eqn)
    more = operands[: len(single.invars) - len(eqn.invars)]
    return _single_while(self, single, [*more, *operands], call)


def _cond(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Imports a `cond`. All branches take the same operands, so each gets the captured arrays of all."""
    around = Origin(eqn.source_info, call)
    blocks, captured = list[Block](), list[SSAValue]()
    for branch in eqn.params["branches"]:
        block, own = self.body(branch, operands[1:], around)
        for other in blocks:
            for value in own:
                other.insert_arg(value.type, len(other.args))
        for number, value in enumerate(captured):
            block.insert_arg(value.type, len(operands) - 1 + number)
        captured += own
        blocks.append(block)
    return self.emit(CondOp, [*operands, *captured], self.results(eqn), NO_PARAMS, self.origin(eqn, call), blocks)


def _shard_map(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Imports a `shard_map`. Its body is imported separately, and runs unchanged on its own mesh axes."""
    params, jaxpr = eqn.params, eqn.params["jaxpr"]
    inner = Importer([var.aval for var in jaxpr.invars])
    results = inner.run(jaxpr, list(inner.frame.block.args), Origin(eqn.source_info, call))
    inner.frame.block.add_op(YieldOp.create(operands=results))
    body = Body(inner.frame.block, tuple(inner.frame.arrays), inner.foreign.values)
    sizes = dict(params["mesh"].shape)
    ins, outs = [cast(ArrayType, value.type) for value in operands], self.results(eqn)
    specs = {
        side: tuple(dims_of(spec, len(type.shape)) for spec, type in zip(params[side], arrays, strict=True))
        for side, arrays in (("in_specs", ins), ("out_specs", outs))
    }
    own_axes = tuple((axis, sizes[axis]) for axis in params["mesh"].axis_names if axis in params["newly_manual_axes"])
    said = ParamsAttr.of(primitive="shard_map", own_axes=own_axes, body=self.foreign.record(body), **specs)
    return self.emit(WholeOp, operands, outs, said, self.origin(eqn, call))


def _summed(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Imports a sum inside of a `shard_map` whose result is marked as invariant. Only JAX's checker needs the mark."""
    said = ParamsAttr.of(primitive="psum", axes=tuple(eqn.params["axes"]), axis_index_groups=None)
    return self.emit(WholeOp, operands, self.results(eqn), said, None)


def _constrain(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Imports a layout that the program gives: `with_sharding_constraint`, `reshard`, `device_put`, `pt.constrain`."""
    params, name = eqn.params, name_of(eqn.primitive)
    if name == "constrain":
        shardings = [Said(params["layout"], by="pt.constrain")]
    else:
        given = params.get("devices") or [params.get("sharding", params.get("dst_sharding"))]
        by, unconstrained = _SAID_BY.get(name, name), tuple(params.get("unconstrained_dims") or ())
        ranks = [len(cast(ShapedArray, atom.aval).shape) for atom in eqn.invars]
        shardings = [read(each, rank, by, unconstrained) for each, rank in zip(given, ranks, strict=True)]
    return [self.annotated(value, said, eqn, call) for value, said in zip(operands, shardings, strict=True)]


_SAID_BY = {"sharding_constraint": "with_sharding_constraint"}


def _unread(why: str) -> Handler:
    """A handler that passes operands on, and records that the program's annotation is not applied, with the reason."""

    def handle(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
        del call
        self.annotations.append((operands[0], Said(by=name_of(eqn.primitive), problem=why)))
        return operands

    return handle


def _jit(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Inlines a call of `jit`, with the shardings that it gives its operands and results."""
    wanted = {side: eqn.params.get(f"{side}_shardings", ()) for side in ("in", "out")}

    def given(side: str, values: Sequence[SSAValue]) -> list[SSAValue]:
        if len(wanted[side]) != len(values):
            return [*values]
        ranks = [len(cast(ArrayType, value.type).shape) for value in values]
        said = [read(each, rank, f"{side}_shardings") for each, rank in zip(wanted[side], ranks, strict=True)]
        return [self.annotated(value, each, eqn, call) for value, each in zip(values, said, strict=True)]

    return given("out", _call(self, eqn, given("in", operands), call))


def _ordered(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Inlines a call whose ops should run in program order. The plan lists that this is not applied."""
    if operands and eqn.params.get("enforce"):
        why = "the order of ops is the device compiler's"
        self.annotations.append((operands[0], Said(by=name_of(eqn.primitive), problem=why)))
    return _call(self, eqn, operands, call)


def _same(self: Importer, eqn: JaxprEqn, operands: list[SSAValue], call: Origin | None) -> Sequence[SSAValue]:
    """Passes the operands on: inside of a program, keys and the arrays that hold them are the same."""
    return operands


_HANDLERS: Mapping[str, Handler] = {
    "jit": _jit,
    **dict.fromkeys(
        """call closed_call composite compute_on custom_jvp_call custom_vjp_call custom_vmap_call fused_call partitioned
        xla_metadata_call""".split(),
        _call,
    ),
    "program_order": _ordered,
    "remat2": _remat,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "shard_map": _shard_map,
    "psum_invariant": _summed,
    "pvary": _same,
    **dict.fromkeys(("random_wrap", "random_unwrap", "random_clone"), _same),
    # What a program says about layouts.
    **dict.fromkeys(("constrain", "device_put", "reshard", "sharding_constraint"), _constrain),
    **dict.fromkeys(("layout_constraint", "relayout"), _unread("the order of dims in memory is the device compiler's")),
    "shard_alike": _unread("tile both values instead: pt.Tile"),
    # Hints for a key checker or a device's compiler.
    **dict.fromkeys(("consume", "xla_metadata_value"), _same),
}

INLINED = frozenset(_HANDLERS) - {"shard_map", "psum_invariant", "pvary"}
"""The names of the primitives that become no op, or an op with regions."""
