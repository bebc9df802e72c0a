"""Another program: what is in some scopes sees one micro-batch at a time, as it does where gradients are accumulated by hand.

The function is traced twice: for the whole batch, and for one micro-batch. Value programs have the same ops, one for one. Those
in the scopes are taken from the second one, and mapped over the micro-batches; all others from the first. Where a value goes
from one to the other, its batch is split, or put together. What has no batch is the same for all micro-batches where it
enters the scopes, and their mean where it leaves them. Of gradients it is the transpose: an equal share enters, a sum leaves. A
gradient is what depends on what JAX is given to pull back, or on what a derivative by hand returns: these are marked.

    batch_norm(x), x: f32[32, 8]   -->   reshape(vmap(batch_norm of f32[8, 8])(reshape(x, (4, 8, 8))), (32, 8))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, cast

import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from ...dialects.ground.errors import Error
from ..inputs.lines import Origin, ScopePath, at_line, scope_path, source_line_of
from ..inputs.names import accepting
from ..jax_private import (
    GIVEN,
    MADE,
    OPENED,
    NameStack,
    called_program,
    closed,
    evaluated,
    gradient_mark,
    jax,
    jaxprs_in_params,
    jnp,
    lax,
    source_info_util,
    tree,
    with_counts,
)
from ..ops.prng_keys import aval_text, is_key

"""The calls whose programs take the places of their ops."""
SPLIT = "micro_batches"
"""The scope of what splits a batch into micro-batches, or puts it together."""
NO_SCOPE: NameStack = source_info_util.NameStack()


@dataclass(frozen=True, slots=True)
class Site:
    """The op that makes a value: its record, and the scopes around it."""

    eqn: JaxprEqn
    outer: NameStack
    """The scopes around the loop that it is in."""
    around: NameStack
    """The scopes around the call that it is in, within that loop."""

    @property
    def stack(self) -> NameStack:
        return self.around + self.eqn.source_info.name_stack

    @property
    def path(self) -> ScopePath:
        return scope_path(self.outer + self.stack)

    @property
    def is_backward(self) -> bool:
        return self.path.direction.name == "backward"

    @property
    def pulls(self) -> int:
        """How often what JAX has made this op of is pulled back."""
        return str(self.outer + self.stack).count("transpose(")

    @property
    def here(self) -> AbstractContextManager[object]:
        """A context in which ops are traced as if the program had them where this one is."""
        return source_info_util.user_context(cast(Any, self.eqn.source_info).traceback, name_stack=self.stack)

    def __str__(self) -> str:
        return f"`{self.eqn.primitive.name}`{at_line(source_line_of(Origin(self.eqn.source_info)))}"


@dataclass(eq=False, slots=True)
class Value:
    """A value: as the whole program has it, as the micro-batches have it, or both.

    Its forms are filled in when they are first read.
    """

    aval: ShapedArray
    part_aval: ShapedArray
    whole: Array | None = None
    part: Array | None = None
    mapped: bool = False
    """Whether `part` has a leading dim for the micro-batches. Otherwise all have the same."""
    made: Site | None = None
    pulls: int = 0
    """How often a gradient is given to be pulled back: again in a derivative by hand that calls `jax.vjp`. 0 for others."""
    differs: bool = False
    """Whether it is a constant of which a micro-batch has another one, as the number of examples."""
    terms: tuple[Array | None, Array] | None = None
    """If it is a gradient without a batch that is a sum: the term from outside of the scopes, and that of each micro-batch."""

    @property
    def is_gradient(self) -> bool:
        return self.pulls > 0

    @property
    def batch(self) -> list[int]:
        """The dims of which a micro-batch has fewer elements."""
        pairs = zip(self.aval.shape, self.part_aval.shape, strict=True)
        return [dim for dim, (whole, part) in enumerate(pairs) if whole != part]

    @property
    def array(self) -> Array:
        """The value in one of the forms that it has."""
        return cast(Array, self.part if self.whole is None else self.whole)

    def on(self, array: Array) -> Value:
        """Another value in the form of `array`."""
        has_whole = self.whole is not None
        whole, part = (array, None) if has_whole else (None, array)
        return replace(self, whole=whole, part=part, mapped=self.mapped and not has_whole, terms=None)


@dataclass(slots=True)
class MicroBatched:
    """Evaluates a program and that of a micro-batch together, op by op."""

    trips: int
    examples: Sequence[int]
    """The extents of the batch in the inputs, the largest first."""
    scopes: Sequence[str]
    """The patterns of the scopes in which ops see one micro-batch."""
    accepts: Callable[[str], bool] = field(init=False)
    mapped: int = 0
    """The number of ops that see one micro-batch."""
    means: list[Value] = field(default_factory=list[Value])
    """The values that are the mean of those of the micro-batches."""

    def __post_init__(self) -> None:
        self.accepts = accepting(self.scopes)

    # --- programs ----------------------------------------------------------------------------------------------------

    def evaluated(self, whole: ClosedJaxpr, part: ClosedJaxpr) -> Callable[..., list[object]]:
        """A function with the arguments of the whole program that returns its results."""

        def flat(*values: object) -> list[object]:
            inner = zip(whole.in_avals, part.in_avals, tree.tree_leaves(values), strict=True)
            given = [Value(aval, small, leaf) for aval, small, leaf in inner]
            return [self.whole(each) for each in self.run(whole, part, given, NO_SCOPE, NO_SCOPE)]

        return flat

    @property
    def changes(self) -> tuple[str, ...]:
        """What is another program than the function, one line each."""
        means = (f"the mean of {self.trips} micro-batches: {aval_text(each.aval)} of {each.made}" for each in self.means)
        scopes = ", ".join(f"`{each}`" for each in self.scopes)
        return (f"what is in {scopes} sees one micro-batch at a time", *dict.fromkeys(means)) if self.mapped else ()

    def run(
        self, whole: ClosedJaxpr, part: ClosedJaxpr, given: Sequence[Value], outer: NameStack, around: NameStack
    ) -> list[Value]:
        """The results of a program, given its arguments, and the scopes around the loop and the call that it is in."""
        one, other = whole.jaxpr, part.jaxpr
        _check_alike(one, other, self.trips)
        env: dict[Var, Value] = dict(zip(one.invars, given, strict=True))
        for var, small, value, there in zip(one.constvars, other.constvars, whole.consts, part.consts, strict=True):
            env[var] = _constant(var, small, value, there)

        def read(vars: Sequence[Var | Literal], smaller: Sequence[Var | Literal]) -> list[Value]:
            return [
                _constant(each, small, each.val, small.val)
                if isinstance(each, Literal) and isinstance(small, Literal)
                else env[cast(Var, each)]
                for each, small in zip(vars, smaller, strict=True)
            ]

        for eqn, there in zip(one.eqns, other.eqns, strict=True):
            results = self.op(Site(eqn, outer, around), there, read(eqn.invars, there.invars))
            env |= {cast(Var, var): each for var, each in zip(eqn.outvars, results, strict=True)}
        return read(one.outvars, other.outvars)

    def op(self, made: Site, there: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        """The results of an op: of the whole program, of a micro-batch, or of the ops within it, if some are in the scopes."""
        eqn = made.eqn
        if (mark := gradient_mark(eqn)) == GIVEN:
            return [replace(operands[0], made=made, pulls=operands[0].pulls + 1)]
        if mark == MADE:
            return [self.by_hand(made, operands[0])]
        if eqn.primitive.name == "add_any" and _is_sum(operands):
            return [self.sum(made, there, operands)]
        if self.accepts("/".join(made.path.parts)):
            if not _is_same(eqn, there, operands):
                return self.in_parts(made, there, operands)
        elif any(self.holds(inner, made.outer + made.stack) for inner in jaxprs_in_params(eqn.params)):
            if eqn.primitive.name in OPENED:
                return self.call(made, there, operands)
            if eqn.primitive.name == "scan":
                return self.scan(made, there, operands)
            helps = ["name a scope around all of it: `each=` takes the scope's name"]
            raise Error(f"scopes of `each` are within {made}, whose trips or branches are not told apart", helps=helps)
        return self.of_whole(made, there, operands)

    def of_whole(self, made: Site, there: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        """The results of an op of the whole program."""
        ends = _results(made, there, operands)
        values = [self.whole(each, made) for each in operands]
        with made.here:
            for end, value in zip(ends, evaluated(made.eqn, values), strict=True):
                end.whole = value
        return ends

    def by_hand(self, made: Site, value: Value) -> Value:
        """What a derivative by hand returns is a gradient, also if it is a constant; in the scopes, that of a micro-batch."""
        if value.is_gradient:
            return value
        is_inside = self.accepts("/".join(made.path.parts))
        forms = {"part": self.part(value, made), "whole": None} if is_inside else {}
        return replace(value, made=made, pulls=max(made.pulls, 1), mapped=is_inside and value.mapped, **forms)

    def holds(self, jaxpr: Jaxpr, around: NameStack) -> bool:
        """Whether a program has an op in the scopes."""
        for eqn in jaxpr.eqns:
            stack = around + eqn.source_info.name_stack
            inner = jaxprs_in_params(eqn.params)
            if self.accepts("/".join(scope_path(stack).parts)) or any(self.holds(each, stack) for each in inner):
                return True
        return False

    def call(self, made: Site, there: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        """The results of a call. What a rematerialised one reads is behind a barrier, as it is in the program."""
        eqn = made.eqn
        prevent = eqn.params.get("differentiated") and eqn.params["prevent_cse"]
        if prevent is True or (prevent and any(prevent)):
            operands = [self.settled(each) for each in operands]
            with made.here:
                behind = lax.optimization_barrier([each.array for each in operands])
            operands = [each.on(array) for each, array in zip(operands, behind, strict=True)]
        return self.run(closed(called_program(eqn)), closed(called_program(there)), operands, made.outer, made.stack)

    def scan(self, made: Site, there: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        """The results of a `scan`. Its carry is that of the whole program; what it stacks may be in parts."""
        eqn, whole, part = with_counts(made.eqn), made.eqn.params["jaxpr"], there.params["jaxpr"]
        consts, carried = eqn.params["num_consts"], eqn.params["num_carry"]
        inner = [*zip(whole.in_avals, part.in_avals, strict=True)][consts:]
        rows, forms = [self.settled(each) for each in operands[consts + carried :]], list[Value]()
        pulls = max((each.pulls for each in operands), default=0)
        flags = _in_loop(whole.jaxpr, [each.is_gradient for each in operands], consts, carried)

        def body(carry: Sequence[Array], row: Sequence[Array]) -> tuple[list[Array], list[Array]]:
            every = zip(inner, carry, flags, strict=False)
            now = [Value(*each, value, made=made, pulls=pulls if flag else 0) for each, value, flag in every]
            there = zip(rows, row, inner[carried:], strict=True)
            mine = [replace(each.on(value), aval=aval, part_aval=small) for each, value, (aval, small) in there]
            # Copies, so that what is traced in the body is not kept for what is outside of it.
            ends = self.run(whole, part, [*map(replace, operands[:consts]), *now, *mine], made.outer + made.stack, NO_SCOPE)
            forms[:] = map(self.settled, ends[carried:])
            return [self.whole(each, made) for each in ends[:carried]], [each.array for each in forms]

        with made.here:
            start = [self.whole(each, made) for each in operands[consts : consts + carried]]
            given = {name: eqn.params[name] for name in ("length", "reverse", "unroll")}
            carry, stacks = lax.scan(body, start, [_turned(each, each.array) for each in rows], **given)
            stacks = [_turned(each, stack) for each, stack in zip(forms, stacks, strict=True)]
        avals = [(_aval(var), _aval(small)) for var, small in zip(made.eqn.outvars, there.outvars, strict=True)]
        every = zip(avals, carry, flags, strict=False)
        last = [Value(*each, value, made=made, pulls=pulls if flag else 0) for each, value, flag in every]
        every = zip(forms, stacks, avals[carried:], strict=True)
        return [*last, *(replace(form.on(each), aval=aval, part_aval=small) for form, each, (aval, small) in every)]

    # --- ops in the scopes -------------------------------------------------------------------------------------------

    def in_parts(self, made: Site, there: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        """The results of an op that sees one micro-batch. Random numbers are those of the whole batch."""
        if any(is_key(each.aval) for each in operands) and all(each.whole is not None for each in operands):
            return self.of_whole(made, there, operands)
        if any(each.is_gradient and made.pulls > each.pulls for each in operands):
            helps = ["take one of the two derivatives forward: `jax.jvp` of `jax.grad`, as `jax.hessian` does"]
            raise Error(f"{made} is in `each`, and pulls back a gradient of a gradient", helps=helps)
        self.mapped += 1
        ends, parts = _results(made, there, operands), [self.part(each, made) for each in operands]
        axes = tuple(0 if each.mapped else None for each in operands)
        mapped = 0 in axes

        def run(*parts: Array) -> list[Array]:
            with made.here:
                return evaluated(there, parts)

        values = jax.vmap(run, axes, 0, axis_size=self.trips)(*parts) if mapped else run(*parts)
        for end, value in zip(ends, values, strict=True):
            end.part, end.mapped = value, mapped
        return ends

    def sum(self, made: Site, there: JaxprEqn, operands: Sequence[Value]) -> Value:
        """A sum of gradients without a batch: what comes from outside of the scopes, and what each micro-batch adds."""
        (end,) = _results(made, there, operands)
        pairs = [
            (each.whole, each.part if each.whole is None else None) if each.terms is None else each.terms for each in operands
        ]
        outer, inner = ([term for term in terms if term is not None] for terms in zip(*pairs, strict=True))
        with made.here:
            end.terms = (reduce(lax.add, outer) if outer else None), reduce(lax.add, inner)
        return end

    def part(self, value: Value, made: Site) -> Array:
        """What an op in the scopes reads of a value."""
        if value.part is None:
            whole, shape = value.whole, value.aval.shape
            value.mapped = bool(value.batch) or value.terms is not None
            with made.here:
                if value.terms is not None:
                    outer, inner = value.terms
                    value.part = inner if outer is None else inner + self.share(outer)[None]
                elif value.batch:
                    dim, minor = self.divided(value, made)
                    with jax.named_scope(SPLIT):
                        split = cast(Array, whole).reshape(*shape[:dim], -1, self.trips, minor, *shape[dim + 1 :])
                        value.part = jnp.moveaxis(split, dim + 1, 0).reshape(self.trips, *value.part_aval.shape)
                else:
                    value.part = self.share(cast(Array, whole)) if value.is_gradient else whole
        return cast(Array, value.part)

    def share(self, gradient: Array) -> Array:
        """What each micro-batch has of the gradient of a mean of them."""
        return gradient * jnp.asarray(1 / self.trips, gradient.dtype)

    def settled(self, value: Value) -> Value:
        """The value in one form: a sum of gradients becomes one array."""
        if value.terms is not None:
            self.whole(value)
        return value

    def whole(self, value: Value, reader: Site | None = None) -> Array:
        """What an op of the whole program, or the result, reads of a value."""
        if value.whole is None:
            assert value.made is not None, "arguments and constants are whole"
            with value.made.here:
                if value.terms is not None:
                    outer, inner = value.terms
                    total = jnp.sum(inner, 0, dtype=value.aval.dtype)
                    value.whole = total if outer is None else outer + total
                elif value.batch:
                    dim, minor = self.divided(value, reader, leaves=True)
                    shape = value.part_aval.shape
                    every = jnp.broadcast_to(cast(Array, value.part), (self.trips, *shape))
                    with jax.named_scope(SPLIT):
                        split = every.reshape(self.trips, *shape[:dim], -1, minor, *shape[dim + 1 :])
                        value.whole = jnp.moveaxis(split, 0, dim + 1).reshape(value.aval.shape)
                else:
                    value.whole = self.joined(value) if value.mapped else value.part
        return cast(Array, value.whole)

    def joined(self, value: Value) -> Array:
        """The value that leaves the scopes without a batch."""
        part, dtype = cast(Array, value.part), value.aval.dtype
        if dtype == jnp.bool_:
            helps = ["name a scope that also holds what reads it", "return a number: counts are added up"]
            raise Error(f"{value.made} says true or false of one micro-batch, and leaves the scopes of `each`", helps=helps)
        if value.is_gradient or jnp.issubdtype(dtype, jnp.integer):
            return jnp.sum(part, 0, dtype=dtype)
        if value.made is not None and value.made.is_backward:
            helps = ["take gradients by `jax.grad` or `jax.vjp`", "name a scope that also holds what reads it"]
            title = f"{value.made}, transposed, leaves the scopes of `each`, and depends on nothing that JAX pulls back"
            raise Error(title, notes=["so nothing tells whether it is a gradient, which is added up, or a mean"], helps=helps)
        self.means.append(value)
        return jnp.mean(part, 0, dtype=dtype)

    def divided(self, value: Value, reader: Site | None, leaves: bool = False) -> tuple[int, int]:
        """The dim of a value that micro-batches divide, and the number of its elements that belong to one example.

        A dim that is no multiple of the batch, as the slots of an expert, is one block for each micro-batch. In one that is
        several times the batch, the elements of an example are taken for neighbours: where it enters the scopes, the loop has
        to lie so, and its gradient leaves as it came. Of others that leave, nothing tells.
        """
        batch, whole, part = value.batch, value.aval.shape, value.part_aval.shape
        if len(batch) != 1 or whole[batch[0]] != self.trips * part[batch[0]]:
            raise Error(
                f"a value of `each`, {aval_text(value.aval)}, is not {self.trips} micro-batches along one dim: "
                f"one of them has {aval_text(value.part_aval)}",
                notes=[_said(value, reader)],
                helps=["name a scope that holds all that makes and reads it"],
            )
        (dim,), extent = batch, whole[batch[0]]
        if leaves and not value.is_gradient and any(extent % each == 0 and extent > each for each in self.examples):
            raise Error(
                f"{aval_text(value.aval)} leaves the scopes of `each` with several elements of an example along dim {dim}, "
                "and nothing tells in which order",
                notes=[_said(value, reader)],
                helps=["name a scope that also holds the reshape to one element for each example"],
            )
        return dim, next((extent // each for each in self.examples if extent % each == 0), extent // self.trips)


def _said(value: Value, reader: Site | None) -> str:
    """What makes a value, and what reads it."""
    made = "an argument" if value.made is None else f"made by {value.made}"
    return f"it is {made}, and {'a result' if reader is None else f'read by {reader}'}"


def _constant(var: Var | Literal, small: Var | Literal, value: Array, part: Array) -> Value:
    differs = not is_key(_aval(var)) and not np.array_equal(np.asarray(value), np.asarray(part))
    return Value(_aval(var), _aval(small), value, part if differs else None, differs=differs)


def _results(made: Site, there: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
    """The results of an op, not yet computed. What is linear in a gradient is one."""
    pulls = max((each.pulls for each in operands), default=0) if made.is_backward else 0
    avals = ((_aval(var), _aval(small)) for var, small in zip(made.eqn.outvars, there.outvars, strict=True))
    return [Value(*each, made=made, pulls=pulls if jnp.issubdtype(each[0].dtype, jnp.inexact) else 0) for each in avals]


def _gradients(jaxpr: Jaxpr, given: Sequence[bool]) -> list[bool]:
    """Which results of the body of a loop are gradients, given which arguments are."""
    found = {var for var, flag in zip(jaxpr.invars, given, strict=True) if flag}
    for eqn in jaxpr.eqns:
        if gradient_mark(eqn) or any(not isinstance(each, Literal) and each in found for each in eqn.invars):
            found |= {var for var in eqn.outvars if jnp.issubdtype(_aval(var).dtype, jnp.inexact)}
    return [not isinstance(each, Literal) and each in found for each in jaxpr.outvars]


def _in_loop(jaxpr: Jaxpr, given: Sequence[bool], consts: int, carried: int) -> list[bool]:
    """Which carries of a loop are gradients in some trip, given which of its operands are."""
    flags = list(given)
    while True:
        grown = [a or b for a, b in zip(flags[consts:], _gradients(jaxpr, flags)[:carried], strict=False)]
        if grown == flags[consts : consts + carried]:
            return grown
        flags[consts : consts + carried] = grown


def _is_sum(operands: Sequence[Value]) -> bool:
    """Whether gradients without a batch are added, of which micro-batches have some."""
    own = [each.terms is not None or (each.whole is None and each.mapped) for each in operands]
    return any(own) and all(each.is_gradient and not each.batch for each in operands)


def _is_same(eqn: JaxprEqn, there: JaxprEqn, operands: Sequence[Value]) -> bool:
    """Whether an op is the same for the whole batch and for a micro-batch. One that holds programs is not compared."""
    pairs = zip((*eqn.invars, *eqn.outvars), (*there.invars, *there.outvars), strict=True)
    if any(_aval(one).shape != _aval(other).shape for one, other in pairs):
        return False
    if any(each.whole is None or each.differs for each in operands) or any(True for _ in jaxprs_in_params(eqn.params)):
        return False
    return _text(eqn.params) == _text(there.params)


def _text(params: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in sorted(params.items()))


def _check_alike(one: Jaxpr, other: Jaxpr, trips: int) -> None:
    """Raises Error unless both programs have the same ops."""
    pairs = zip(one.eqns, other.eqns, strict=False)
    differs = next((a for a, b in pairs if a.primitive is not b.primitive or _literals(a) != _literals(b)), None)
    if differs is None and len(one.eqns) == len(other.eqns):
        return
    made = Site(differs or (one if len(one.eqns) > len(other.eqns) else other).eqns[-1], NO_SCOPE, NO_SCOPE)
    helps = ["take micro-batches of another size", "or leave `each` out: `loops=` allows the exact program"]
    raise Error(f"one of {trips} micro-batches has other ops than the whole batch, from {made} on", helps=helps)


def _literals(eqn: JaxprEqn) -> list[bool]:
    return [isinstance(each, Literal) for each in eqn.invars]


def _aval(var: Var | Literal) -> ShapedArray:
    return cast(ShapedArray, var.aval)


def _turned(form: Value, rows: Array) -> Array:
    """Rows of values in parts, as values in parts of rows, and back."""
    return jnp.swapaxes(rows, 0, 1) if form.whole is None and form.mapped else rows
