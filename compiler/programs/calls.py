"""Reads a traced program as calls of kernels and the JAX code between them, each on a device set.

A kernel runs on its own set. JAX code runs where its operands are. What depends on no kernel, such as an argument times two, is
computed where it is needed; so is a sum of cotangents that come from two sets.

    y = a(x);  z = y * 2;  b(z) + 1   -->   on left: a;  on left: mul;  on right: b;  on right: add
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self, cast

from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from ...dialects.ground.errors import Error
from ...dialects.mesh import Mesh
from ...rewrites.program.breadth_first import reached
from ..inputs.arguments import UserFunction
from ..inputs.lines import Origin, source_line_of
from ..jax_private import (
    OPENED,
    SourceInfo,
    called_program,
    closed,
    evaluated,
    jax,
    jaxprs_in_params,
    jnp,
    on_its_line,
    with_counts,
)
from ..plan.state import State
from ..run.partitioned import Partitioned, linear_p, partitioned_p

KERNELS = partitioned_p, linear_p
MEETING = "add_any"
"""The sum of cotangents of one value, of which each has come from where the value was used."""


@dataclass(eq=False)
class Value:
    """A value of a program, and the device set on which it is. None: it is made where it is needed."""

    aval: ShapedArray
    on: Mesh | None = None
    made: Made | None = None
    """What makes it, if that has no place yet."""
    number: int = 0
    """Which of its results it is."""
    array: Array | None = None
    """A constant."""
    by: Call | Between | None = None
    """What makes it on its set."""
    rows: Sequence[Value] = ()
    """What the trips of a `scan` have made, of which it is the stack. Another `scan` takes them one by one."""

    @classmethod
    def of(cls, array: Array) -> Self:
        """A constant."""
        return cls(cast(ShapedArray, jax.typeof(array)), array=array)


@dataclass(eq=False)
class Made:
    """An equation that has no place yet, with its copies on the sets where it was needed."""

    order: int
    eqn: JaxprEqn
    ins: Sequence[Value]
    copies: dict[Mesh, list[Value]] = field(default_factory=dict[Mesh, "list[Value]"])


@dataclass(eq=False)
class Call:
    """A call of a kernel."""

    on: Mesh
    plan: State
    ins: Sequence[Value]
    outs: Sequence[Value]
    where: Origin


@dataclass(eq=False)
class Between:
    """JAX code between kernels, on one device set: its equations, each with its operands and results."""

    on: Mesh
    eqns: list[tuple[JaxprEqn, Sequence[Value], Sequence[Value]]] = field(
        default_factory=list[tuple[JaxprEqn, Sequence[Value], Sequence[Value]]]
    )

    @property
    def ins(self) -> list[Value]:
        """The values from outside that it reads."""
        own = {value for _, _, outs in self.eqns for value in outs}
        return list(dict.fromkeys(value for _, ins, _ in self.eqns for value in ins if value not in own))

    @property
    def where(self) -> Origin:
        """Where its first equation comes from."""
        return Origin(cast(SourceInfo, self.eqns[0][0].source_info))

    def run(self, arrays: Sequence[Array], outs: Sequence[Value]) -> list[Array]:
        """Computes some of its values."""
        known = dict(zip(self.ins, arrays, strict=True))
        for eqn, ins, made in self.eqns:
            given = iter(ins)
            values = [None if isinstance(atom, Literal) else known[next(given)] for atom in eqn.invars]
            with on_its_line(cast(SourceInfo, eqn.source_info)):
                known.update(zip(made, evaluated(eqn, values), strict=True))
        return [known[value] for value in outs]


@dataclass(eq=False)
class Calls:
    """A program, read: what runs, in order; its arguments, among them the arrays that it closes over; its results."""

    every: list[Call | Between]
    arguments: Sequence[Value]
    results: Sequence[Value]
    constants: Sequence[Value]
    """The constants that kernels take."""
    sets: Sequence[Mesh]


def read_calls(function: UserFunction, program: ClosedJaxpr) -> Calls:
    """Reads a traced program. Raises Error, with the line, for code on several device sets, and for kernels in loops."""
    reader = _Reader(function)
    arguments = [Value(aval) for aval in program.in_avals]
    captured = list(map(Value.of, program.consts))
    results = reader.run(program.jaxpr, captured, arguments)
    if not reader.sets:
        helps = ["call some: a = pt.kernel(fn, devices=pt.devices(2))", "or use pt.jit, for a program on one mesh"]
        raise function.error(f"`{function.name}` calls no kernels", *helps)
    results = [reader.whole(value, None) for value in results]
    results = [reader.at(value, reader.home(value)) for value in results]
    for made in reader.effects:
        if not made.copies:
            reader.make([made], reader.first([value.on for value in made.ins]))
    reader.close_all()
    used = dict.fromkeys(value for each in reader.every for value in each.ins if value.array is not None)
    used |= dict.fromkeys(value for value in results if value.array is not None)
    return Calls(reader.every, arguments, results, [*used], [*reader.sets.values()])


class _Reader:
    """Visits equations in order. Code between kernels is collected on each set, and ends where its results are needed."""

    def __init__(self, function: UserFunction) -> None:
        self.function = function
        self.every: list[Call | Between] = []
        self.open: dict[Mesh, Between] = {}
        self.made = 0
        self.effects: list[Made] = []
        """Equations that are not placed yet, and do more than compute."""
        self.stacks = dict[Value, Value]()
        """The stacks of what trips have made, where more than a `scan` reads them."""
        self.sets: dict[str, Mesh] = {}
        """Name -> device set, in the order in which kernels use them."""

    def run(self, jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value], outer: Origin | None = None) -> list[Value]:
        known = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

        def value(atom: Var | Literal) -> Value:
            if isinstance(atom, Literal):
                aval = cast(ShapedArray, atom.aval)
                return Value(aval, array=jnp.asarray(atom.val, aval.dtype))
            return known[atom]

        for eqn in jaxpr.eqns:
            where = Origin(eqn.source_info, outer)
            if eqn.primitive in KERNELS:
                made = self.called(eqn, [self.whole(value(atom), where) for atom in eqn.invars], where)
            elif eqn.primitive.name == "scan" and has_kernels(eqn.params["jaxpr"]):
                made = self.unrolled(eqn, list(map(value, eqn.invars)), where)
            elif any(map(has_kernels, jaxprs_in_params(eqn.params))):
                inner = self.opened(eqn, where)
                made = self.run(inner.jaxpr, list(map(Value.of, inner.consts)), list(map(value, eqn.invars)), where)
            else:
                ins = [self.whole(known[atom], where) for atom in eqn.invars if isinstance(atom, Var)]
                made = self.between(eqn, ins, where)
            known.update(zip(eqn.outvars, made, strict=True))
        return list(map(value, jaxpr.outvars))

    def unrolled(self, eqn: JaxprEqn, ins: Sequence[Value], where: Origin) -> list[Value]:
        """The trips of a `scan` in which kernels are called, written out one after another."""
        params, inner = with_counts(eqn).params, cast(ClosedJaxpr, eqn.params["jaxpr"])
        consts, carries, length = params["num_consts"], params["num_carry"], params["length"]
        given, carry, stacked = ins[:consts], list(ins[consts : consts + carries]), ins[consts + carries :]
        trips = dict[int, list[Value]]()
        for trip in reversed(range(length)) if params["reverse"] else range(length):
            slices = [each.rows[trip] if each.rows else self.applied(partial(_slice, trip), [each], where) for each in stacked]
            known = list(map(Value.of, inner.consts))
            made = self.run(inner.jaxpr, known, [*given, *carry, *slices], where)
            carry, trips[trip] = made[:carries], made[carries:]
        rows = zip(*(trips[trip] for trip in range(length)), strict=True)
        ends = [cast(ShapedArray, end.aval) for end in eqn.outvars[carries:]]
        if not length:
            return [*carry, *(self.applied(partial(jnp.zeros, end.shape, end.dtype), (), where) for end in ends)]
        return [*carry, *(Value(end, rows=row) for end, row in zip(ends, rows, strict=True))]

    def whole(self, value: Value, where: Origin | None) -> Value:
        """A value, stacked if it is what the trips of a `scan` have made."""
        if not value.rows:
            return value
        if value not in self.stacks:
            self.stacks[value] = self.applied(_stack, [self.whole(row, where) for row in value.rows], where)
        return self.stacks[value]

    def applied(self, function: Callable[..., Array], ins: Sequence[Value], where: Origin | None) -> Value:
        """JAX code that makes one value of others."""
        made = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(each.aval.shape, each.aval.dtype) for each in ins))
        return self.run(made.jaxpr, list(map(Value.of, made.consts)), ins, where)[0]

    def opened(self, eqn: JaxprEqn, where: Origin) -> ClosedJaxpr:
        """The program of a call in which kernels are called. Raises Error for one that runs several times, or by choice."""
        name = eqn.primitive.name
        if name not in OPENED:
            title = f"`{name}` calls kernels, and a program's own steps are only calls"
            scan = "or use a `scan`, whose trips are written out"
            raise self.error(title, where, "put all of it into one kernel: pt.kernel(fn, devices=...)", scan)
        return closed(called_program(eqn))

    def called(self, eqn: JaxprEqn, ins: Sequence[Value], where: Origin) -> list[Value]:
        """A call of a kernel. The arrays that its program closes over are constants."""
        program = cast(Partitioned, eqn.params["program"])
        on = self.known_set(program.root.mesh.whole(), where)
        traced = program.plan.source.traced
        captured = traced.consts[len(ins) - len(traced.in_avals) :]
        given = [self.ready(self.at(value, on)) for value in (*ins, *map(Value.of, captured))]
        call = Call(on, program.plan, given, [], where)
        call.outs = [Value(cast(ShapedArray, atom.aval), on, by=call) for atom in eqn.outvars]
        self.every.append(call)
        return list(call.outs)

    def known_set(self, on: Mesh, where: Origin) -> Mesh:
        """Notes a device set. Raises Error if another one has its name."""
        known = self.sets.setdefault(on.devices, on)
        if known is not on:
            title = f"`{self.function.name}` uses two device sets of one name: {known} and {on}"
            raise self.error(title, where, f'give them names: pt.{on.on("")!r}.on("right")')
        return on

    def between(self, eqn: JaxprEqn, ins: Sequence[Value], where: Origin) -> list[Value]:
        """JAX code where its operands are; if they are nowhere yet, or cotangents on several sets, where it is needed."""
        sets = dict.fromkeys(value.on for value in ins if value.on is not None)
        if len(sets) > 1 and eqn.primitive.name != MEETING:
            names = " and ".join(f"`{each}`" for each in sets)
            helps = ["put it into a kernel, to which operands are moved: pt.kernel(fn, devices=...)"]
            raise self.error(f"`{eqn.primitive.name}` has operands on several device sets: {names}", where, *helps)
        if len(sets) == 1:
            (on,) = sets
            return self.placed(eqn, ins, on)
        self.made += 1
        made = Made(self.made, eqn, ins)
        if eqn.effects:
            self.effects.append(made)
        return [Value(cast(ShapedArray, atom.aval), made=made, number=at) for at, atom in enumerate(eqn.outvars)]

    def home(self, value: Value) -> Mesh:
        """Where a result is made that nothing else needs: on the first of the sets of its operands, or of the program."""
        return self.first([each.on for each in value.made.ins] if value.made is not None else ())

    def first(self, among: Sequence[Mesh | None]) -> Mesh:
        """The first of the program's sets that is among these; if none is, the first."""
        sets = [*self.sets.values()]
        return next((each for each in sets if each in among), sets[0])

    def at(self, value: Value, on: Mesh) -> Value:
        """The value for code on a set. What had no place is made there; arguments and constants are wherever they are read."""
        if value.on is not None or value.made is None:
            return value
        if on not in value.made.copies:
            self.make([value.made], on)
        return value.made.copies[on][value.number]

    def make(self, starts: Sequence[Made], on: Mesh) -> None:
        """Places equations, and those before them that have no place either, on a set."""

        def before(made: Made) -> Iterator[Made]:
            every = (each.made for each in made.ins if each.on is None)
            return (each for each in every if each is not None and on not in each.copies)

        for made in sorted(reached(starts, before), key=lambda made: made.order):
            made.copies[on] = self.placed(made.eqn, made.ins, on)

    def placed(self, eqn: JaxprEqn, ins: Sequence[Value], on: Mesh) -> list[Value]:
        """Adds an equation to the code between kernels on a set."""
        given = [self.ready(self.at(value, on), on) for value in ins]
        group = self.open.setdefault(on, Between(on))
        outs = [Value(cast(ShapedArray, atom.aval), on, by=group) for atom in eqn.outvars]
        group.eqns.append((eqn, given, outs))
        return outs

    def ready(self, value: Value, on: Mesh | None = None) -> Value:
        """Ends the code that makes a value, so that a kernel, or code on another set, can read it."""
        if isinstance(value.by, Between) and value.by.on is not on:
            self.close(value.by.on, value.by)
        return value

    def close(self, on: Mesh, group: Between) -> None:
        if self.open.get(on) is group:
            del self.open[on]
            self.every.append(group)

    def close_all(self) -> None:
        for on, group in [*self.open.items()]:
            self.close(on, group)

    def error(self, title: str, where: Origin, *helps: str) -> Error:
        location = source_line_of(where).location() or self.function.location()
        return Error(title, location=location, label="here", helps=helps)


def _slice(trip: int, stacked: Array) -> Array:
    """What a trip of a `scan` sees of a stacked array."""
    return jax.lax.index_in_dim(stacked, trip, keepdims=False)


def _stack(*rows: Array) -> Array:
    """What the trips of a `scan` have made, as one array."""
    return jnp.stack(rows)


def has_kernels(jaxpr: Jaxpr | ClosedJaxpr) -> bool:
    """Whether a program calls kernels, or a program in it does."""
    eqns = (jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr).eqns
    return any(eqn.primitive in KERNELS or any(map(has_kernels, jaxprs_in_params(eqn.params))) for eqn in eqns)
