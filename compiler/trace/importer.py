"""Imports a jaxpr as an xDSL function, in one pass, with one operation for each equation.

Calls are inlined, loops keep their body as a region, and composite primitives are expanded. Everything that depends only on
an equation's parameters and operand types is computed once for all equations that share them: a training step has tens of
thousands of equations, but only hundreds of signatures.

    { lambda ; a:f32[4] b:f32[4]. let c = pjit[jaxpr={ d = mul a b }] ; e = add c 1.0 in (e,) }    -->
    %0 = lax.mul %a, %b : f32[4], f32[4] -> f32[4];  %1 = lax.constant {value = 1.0} : f32[];  %2 = lax.add %0, %1 ...
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from ..define.self_defining import DERIVED, derive
from ..inputs.lines import Origin
from ..jax_private import CALLS, called_program, dce_jaxpr, gradient_mark, jaxprs_in_params, with_counts
from ..ops.params import Foreign, encode, op_name
from ..ops.primitives import check_equation, name_of
from ..ops.prng_keys import Aval, implementation, is_key, is_void, physical, unwrap
from ..ops.shard_map import ShardMapBody, dims_of
from .annotations import Annotation, Said, said_by_sharding
from .constant_folding import Constants, Positions
from .counted_positions import Counted, counted
from .expansions import expand
from .vmapped_while import with_one_predicate
from .why_whole import ONCE

Values = Sequence[SSAValue]
Handler: TypeAlias = "Callable[[EquationStep], Values]"


@dataclass(slots=True)
class OpenBlock:
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
    """The operation that equations with one signature become."""

    op: type[LaxOp]
    params: ParamsAttr
    results: tuple[ArrayType, ...]
    may_follow: bool = False
    """Whether the results are known if the operands are."""


class Importer:
    """Imports one function. `origins` holds the origin of each operation, `frame.arrays` the captured arrays."""

    def __init__(self, in_avals: Sequence[Aval]) -> None:
        self.types: dict[Aval, ArrayType] = {}
        self.recipes: dict[Hashable, Recipe | ClosedJaxpr] = {}
        self.origins: dict[Operation, Origin] = {}
        self.foreign = Foreign()
        self.frame = OpenBlock(Block(arg_types=[self.type(aval) for aval in in_avals]), len(in_avals))
        self.fixed: Origin | None = None
        self.constants = Constants()
        self.annotations: list[Annotation] = []

    def run(self, jaxpr: Jaxpr, inputs: Values, call: Origin | None = None) -> list[SSAValue]:
        """Appends the equations of `jaxpr` for these inputs, and returns its results.

        `call` is the call that it is inlined from. Every run has its own environment, because one jaxpr can be the body of
        several calls.
        """
        env: dict[Any, SSAValue] = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))
        for eqn in jaxpr.eqns:
            step = EquationStep(self, name_of(eqn.primitive), eqn, call)
            step.operands = [self.literal(a, step) if type(a) is Literal else env[a] for a in eqn.invars]
            for var, value in zip(eqn.outvars, _HANDLERS.get(step.name, _plain)(step), strict=True):
                env[var] = value
        return [self.literal(a, None) if type(a) is Literal else env[a] for a in jaxpr.outvars]

    def emit(
        self,
        op: type[Operation],
        operands: Values,
        results: Sequence[Attribute],
        params: ParamsAttr,
        origin: Origin | None,
        blocks: Sequence[Block] = (),
    ) -> Values:
        regions = [Region(block) for block in blocks]
        made = op.create(operands=operands, result_types=results, properties={"params": params}, regions=regions)
        self.frame.block.add_op(made)
        if origin is not None:
            self.origins[made] = origin
        return made.results

    def end(self, last: Operation) -> None:
        """Ends the current block, and removes the ops that nothing reads because their values are known."""
        block = self.frame.block
        block.add_op(last)
        for op in reversed(list(block.ops)):
            if not any(result.uses for result in op.results) and op.name.removeprefix("lax.") in self.constants.ops:
                self.origins.pop(op, None)
                op.detach()
                op.erase()

    def body(self, closed: ClosedJaxpr, consts: Values, call: Origin) -> tuple[Block, list[SSAValue]]:
        """Imports the block of a region. Returns it with the outer values of the arrays that it captures.

        Its first arguments are `consts`, and after them the captured arrays.
        """
        outer, block = self.frame, Block(arg_types=[self.type(var.aval) for var in closed.jaxpr.invars])
        frame, arguments = OpenBlock(block, len(consts)), list(block.args)
        self.frame = frame
        self.constants.enter(arguments[: len(consts)], consts)
        inputs = [*map(self.capture, closed.consts), *arguments]
        self.end(YieldOp.create(operands=self.run(closed.jaxpr, inputs, call)))
        self.frame = outer
        return block, [self.capture(array) for array in frame.arrays]

    def results(self, eqn: JaxprEqn) -> tuple[ArrayType, ...]:
        return tuple(self.type(var.aval) for var in eqn.outvars)

    def recipe(self, eqn: JaxprEqn, positions: Sequence[Positions] | None, count: Sequence[Counted]) -> Recipe | ClosedJaxpr:
        """The translation of equations with this primitive, these parameters, these operand types and known positions.

        It is an operation, or a program to inline instead.
        """
        results = self.results(eqn)
        if (inlined := expand(eqn, positions, count)) is not None:
            return inlined
        if name_of(eqn.primitive) in DERIVED:
            return self.derived(eqn, results)
        name = op_name(name_of(eqn.primitive))
        definition = definitions.get(name)
        # A scatter that sets has no combiner; with one it is `scatter_apply`, which has no definition.
        applies = name == "scatter" and eqn.params["update_jaxpr"] is not None
        if definition is None or applies or name in _PSEUDO:
            return Recipe(WholeOp, self.whole(eqn), results)
        check_equation(name, eqn)
        params = encode(eqn.params, self.foreign, definition)
        return Recipe(
            OPS[name], params if params.data else NO_PARAMS, results, may_follow=self.constants.may_follow(name, results)
        )

    def derived(self, eqn: JaxprEqn, results: tuple[ArrayType, ...]) -> Recipe | ClosedJaxpr:
        """The recipe of a call that defines its own op; otherwise of the program inside of it, or of the unpartitioned call."""
        found = derive(eqn)
        if found.inside is not None:
            return found.inside
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
        return encode(eqn.params, self.foreign).changed(**extra)

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

    def literal(self, literal: Literal, step: "EquationStep | None") -> SSAValue:
        """The constant of a literal, an operand of this equation or a result: one in each block for each value and dtype."""
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
            origin = self.fixed if step is None else step.origin
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


@dataclass(slots=True)
class EquationStep:
    """An equation to import, with its operands, and the call that it is inlined from."""

    to: Importer
    name: str
    eqn: JaxprEqn
    call: Origin | None
    operands: list[SSAValue] = field(default_factory=list[SSAValue])

    # Any: the parameters of JAX's primitives have no types.
    @property
    def params(self) -> dict[str, Any]:
        return self.eqn.params

    @property
    def around(self) -> Origin:
        """The equation as the call from which its own program is inlined."""
        return Origin(self.eqn.source_info, self.call)

    @property
    def origin(self) -> Origin:
        return self.to.fixed or self.around

    def emit(
        self,
        op: type[Operation],
        operands: Values,
        params: ParamsAttr = NO_PARAMS,
        results: Sequence[Attribute] | None = None,
        blocks: Sequence[Block] = (),
    ) -> Values:
        """The results of an op for the equation, of its types if there are no others."""
        types = self.to.results(self.eqn) if results is None else results
        return self.to.emit(op, operands, types, params, self.origin, blocks)

    def annotated(self, value: SSAValue, said: Said | None) -> SSAValue:
        """The value with the layout that the program gives it: the result of an op, whose operand has a layout of its own."""
        if said is None or said.says_nothing:
            return value
        if not said.problem:
            (value,) = self.emit(OPS["constrain"], [value], ParamsAttr.of(layout=said.dims), [value.type])
        self.to.annotations.append((value, said))
        return value

    def positions(self) -> list[Positions] | None:
        """The positions at which the equation reads or updates an array, if all of them follow from literals."""
        starts = _starts(self.name, len(self.operands))
        found = [each for at in starts if (each := self.to.constants.of(self.operands[at])) is not None] if starts else []
        return found if found and len(found) == len(starts) else None

    def counted(self) -> tuple[Counted, ...]:
        """The components of the index vectors of a gather or a scatter that count the vectors."""
        is_by_vectors = "dimension_numbers" in self.params and _starts(self.name, len(self.operands))
        return tuple(counted(self.to.constants, self.operands[1])) if is_by_vectors else ()

    def inline(self, closed: ClosedJaxpr) -> Values:
        """Inlines a program in place of the equation, and gives its operations that equation's origin.

        If the equation holds programs, such as the product and the solver of a linear system, these have lines of their own.
        """
        to, origin = self.to, self.origin
        outer, inputs = to.fixed, [*map(to.capture, closed.consts), *self.operands]
        if next(jaxprs_in_params(self.params), None) is not None:
            return to.run(closed.jaxpr, inputs, origin)
        to.fixed = origin
        results = to.run(closed.jaxpr, inputs, self.call)
        to.fixed = outer
        return results


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


def _plain(step: EquationStep) -> Values:
    """An equation by the recipe of its signature."""
    if gradient_mark(step.eqn):
        return step.operands
    to, eqn, params = step.to, step.eqn, step.eqn.params
    signature = (eqn.primitive, eqn.ctx, *params, *params.values(), *(atom.aval for atom in eqn.invars))
    if ids := step.positions():
        signature += tuple((each.dtype, each.tobytes()) for each in ids)
    signature += (count := () if ids else step.counted(),)
    try:
        recipe = to.recipes.get(signature)
    except TypeError:  # a parameter that cannot be hashed
        recipe = to.recipe(eqn, ids, count)
    else:
        if recipe is None:
            recipe = to.recipes[signature] = to.recipe(eqn, ids, count)
    if not isinstance(recipe, Recipe):
        return step.inline(recipe)
    made = to.emit(recipe.op, step.operands, recipe.results, recipe.params, step.origin)
    if recipe.may_follow:
        to.constants.made(step.operands, made)
    wanted = params.get("out_sharding") or params.get("sharding")
    if wanted is None:
        return made
    said = said_by_sharding(wanted, len(cast(ArrayType, made[0].type).shape), "out_sharding")
    # JAX gives some ops of a derivative a sharding without axes.
    return [step.annotated(made[0], said), *made[1:]] if said is not None and any(said.dims) else made


def _call(step: EquationStep) -> Values:
    """Inlines the program that a call runs."""
    jaxpr = called_program(step.eqn)
    consts: list[SSAValue] = []
    if isinstance(jaxpr, ClosedJaxpr):
        consts, jaxpr = [*map(step.to.capture, jaxpr.consts)], jaxpr.jaxpr
    return step.to.run(jaxpr, [*consts, *step.operands], step.around)


def _remat(step: EquationStep) -> Values:
    """Inlines a region to recompute. If differentiated, its inputs pass a barrier, or XLA would share the recomputation."""
    prevent, operands = step.params["prevent_cse"], step.operands
    chosen = (prevent,) * len(operands) if isinstance(prevent, bool) else tuple(prevent)
    if step.params["differentiated"] and any(chosen):
        behind = [value for value, each in zip(operands, chosen, strict=True) if each]
        barred = iter(step.emit(OPS["optimization_barrier"], behind, results=[value.type for value in behind]))
        operands = [next(barred) if each else value for value, each in zip(operands, chosen, strict=True)]
    return step.to.run(step.params["jaxpr"], operands, step.around)


def _loop(op: type[RegionOp], kept: Sequence[str], **regions: str) -> Handler:
    """A handler that keeps the regions of a loop. Arrays that a region captures become its last consts."""

    def handle(step: EquationStep) -> Values:
        own, operands = step.params, step.operands
        params = {key: own[key] for key in kept}
        blocks, given = list[Block](), list[SSAValue]()
        for count, region in regions.items():
            consts, operands = operands[: own[count]], operands[own[count] :]
            block, captured = step.to.body(own[region], consts, step.around)
            params[count] = len(consts) + len(captured)
            blocks.append(block)
            given += [*consts, *captured]
        return step.emit(op, [*given, *operands], encode(params, step.to.foreign), blocks=blocks)

    return handle


_counted_scan = _loop(ScanOp, ("length", "num_carry", "reverse", "unroll"), num_consts="jaxpr")
_single_while = _loop(WhileOp, (), cond_nconsts="cond_jaxpr", body_nconsts="body_jaxpr")


def _scan(step: EquationStep) -> Values:
    return _counted_scan(replace(step, eqn=with_counts(step.eqn)))


def _while(step: EquationStep) -> Values:
    single = with_one_predicate(step.eqn)
    more = step.operands[: len(single.invars) - len(step.operands)]
    return _single_while(replace(step, eqn=single, operands=[*more, *step.operands]))


def _cond(step: EquationStep) -> Values:
    """Imports a `cond`. All branches take the same operands, so each gets the captured arrays of all."""
    operands = step.operands
    blocks, captured = list[Block](), list[SSAValue]()
    for branch in step.params["branches"]:
        block, own = step.to.body(branch, operands[1:], step.around)
        for other in blocks:
            for value in own:
                other.insert_arg(value.type, len(other.args))
        for number, value in enumerate(captured):
            block.insert_arg(value.type, len(operands) - 1 + number)
        captured += own
        blocks.append(block)
    return step.emit(CondOp, [*operands, *captured], blocks=blocks)


def _shard_map(step: EquationStep) -> Values:
    """Imports a `shard_map`. Its body is imported separately, and runs unchanged on its own mesh axes."""
    params, jaxpr = step.params, step.params["jaxpr"]
    inner = Importer([var.aval for var in jaxpr.invars])
    results = inner.run(jaxpr, list(inner.frame.block.args), step.around)
    inner.frame.block.add_op(YieldOp.create(operands=results))
    body = ShardMapBody(inner.frame.block, tuple(inner.frame.arrays), inner.foreign.values)
    sizes = dict(params["mesh"].shape)
    types = {"in_specs": [value.type for value in step.operands], "out_specs": step.to.results(step.eqn)}
    specs = {
        side: tuple(dims_of(spec, len(cast(ArrayType, type).shape)) for spec, type in zip(params[side], each, strict=True))
        for side, each in types.items()
    }
    own_axes = tuple((axis, sizes[axis]) for axis in params["mesh"].axis_names if axis in params["newly_manual_axes"])
    said = ParamsAttr.of(primitive="shard_map", own_axes=own_axes, body=step.to.foreign.record(body), **specs)
    return step.emit(WholeOp, step.operands, said)


def _summed(step: EquationStep) -> Values:
    """Imports a sum inside of a `shard_map` whose result is marked as invariant. Only JAX's checker needs the mark."""
    said = ParamsAttr.of(primitive="psum", axes=tuple(step.params["axes"]), axis_index_groups=None)
    return step.emit(WholeOp, step.operands, said)


def _constrain(step: EquationStep) -> Values:
    """Imports a layout that the program gives: `with_sharding_constraint`, `reshard`, `device_put`, `pt.constrain`."""
    params, name = step.params, step.name
    if name == "constrain":
        shardings = [Said(params["layout"], by="pt.constrain")]
    else:
        given = params.get("devices") or [params.get("sharding", params.get("dst_sharding"))]
        by, unconstrained = _SAID_BY.get(name, name), tuple(params.get("unconstrained_dims") or ())
        ranks = [len(cast(ShapedArray, atom.aval).shape) for atom in step.eqn.invars]
        shardings = [said_by_sharding(each, rank, by, unconstrained) for each, rank in zip(given, ranks, strict=True)]
    return [*map(step.annotated, step.operands, shardings)]


_SAID_BY = {"sharding_constraint": "with_sharding_constraint"}


def _unread(why: str) -> Handler:
    """A handler that passes operands on, and records that the program's annotation is not applied, with the reason."""

    def handle(step: EquationStep) -> Values:
        step.to.annotations.append((step.operands[0], Said(by=step.name, problem=why)))
        return step.operands

    return handle


def _jit(step: EquationStep) -> Values:
    """Inlines a call of `jit`, with the shardings that it gives its operands and results."""

    def given(side: str, values: Values) -> list[SSAValue]:
        wanted = step.params.get(side, ())
        if len(wanted) != len(values):
            return [*values]
        ranks = [len(cast(ArrayType, value.type).shape) for value in values]
        return [
            *map(step.annotated, values, (said_by_sharding(each, rank, side) for each, rank in zip(wanted, ranks, strict=True)))
        ]

    return given("out_shardings", _call(replace(step, operands=given("in_shardings", step.operands))))


def _ordered(step: EquationStep) -> Values:
    """Inlines a call whose ops should run in program order. The plan lists that this is not applied."""
    if step.operands and step.params.get("enforce"):
        _unread("the order of ops is the device compiler's")(step)
    return _call(step)


def _same(step: EquationStep) -> Values:
    """Passes the operands on: inside of a program, keys and the arrays that hold them are the same."""
    return step.operands


_HANDLERS: Mapping[str, Handler] = {
    "jit": _jit,
    **dict.fromkeys(CALLS, _call),
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
