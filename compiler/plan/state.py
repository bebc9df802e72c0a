"""The data of a plan: a traced program, the placement of its ranges, and the tactics that placed them.

Every query on a plan takes a `State`; `pt.Plan` is a `State` with these queries as methods.

    trace --> Source: the program as flat tables, the names of its values, its classes of dims; shared by all its plans
    Source + mesh + table of claims + tactics --> State --> decisions: the layout of each value, and where it changes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Never, Self, TypeVar, cast

from ...dialects.ground.errors import Error, did_you_mean
from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh, with_parts
from ...dialects.ranges.algebra import Place
from ...rewrites.decide.ahead import decide_all
from ...rewrites.decide.decide import Decisions
from ...rewrites.decide.device_sets import units
from ...rewrites.decide.placements import Unreduced
from ...rewrites.decide.table import Table
from ...rewrites.program.dim_classes import Classes, classes
from ...rewrites.program.flatten import flatten
from ...rewrites.program.program import Node, NodeId, Program, Signatures, ValueId
from ..gc_pause import without_collector
from ..inputs.checks import dim_number, mesh_given
from ..inputs.message_language import Question, cited, question, step
from ..inputs.names import Patterns, pattern
from ..ops.prng_keys import is_key, key_rank
from ..trace.trace import Traced
from .addresses import Addresses
from .donation import donated_bytes
from .range_names import Inputs, guessed_inputs, range_names
from .seeds import SeedOn

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Action:
    """One line of a plan's trace, with the values that it claims, and how far the claims are propagated."""

    text: str
    kind: str
    values: Mapping[ValueId, None] = field(default_factory=dict[ValueId, None])
    """The values that it claims, in the order in which it names them. A dict serves as an ordered set."""
    propagate: bool = True
    held: bool = False
    is_said: bool = False
    """Whether it makes claims of the program itself, which do not cross the program's constraints."""
    reconciles: tuple[int, ...] = ()
    """If it also places the ops that such claims leave: the numbers of all actions that make them, with its own."""
    again: str = ""
    """The axis along which it propagates all claims; empty for other actions."""
    in_loops: tuple[SeedOn, ...] = ()
    """Its claims on loops. They are made again after later claims on axes, so that each device cuts its own part."""
    idle: bool = False
    """Whether it changes nothing: no claim is new, and nothing follows."""
    redo: Callable[[State], State] | None = field(default=None, compare=False)
    """Applies the action again to a plan; None for the action with which every plan of the program starts."""

    def __repr__(self) -> str:
        return f"Action({self.text!r})"

    @property
    def is_own(self) -> bool:
        """Whether the program itself makes its claims. A replay skips its line, which is a comment, and makes them again."""
        return self.text.startswith("#")

    @property
    def said(self) -> str:
        """The text as sentences cite it: `the program's own shard_map`."""
        return cited(self.text.removeprefix("# "))


@dataclass(frozen=True)
class Source:
    """What all plans of one trace share: the trace, the program as tables, its names, its classes of dims."""

    traced: Traced
    program: Program
    addresses: Addresses
    root: Traced
    """The trace before any law rewrote the program."""

    def __repr__(self) -> str:
        return f"Source({self.traced})"

    @property
    def mesh(self) -> Mesh:
        """The mesh on which its plans begin. Tactics may split its axes."""
        return self.program.mesh

    @cached_property
    def units(self) -> Sequence[int]:
        """Of each op, the number of what runs on one device set with it."""
        return units(self.program)

    @cached_property
    def by_scope(self) -> Mapping[str, Sequence[NodeId]]:
        """The ops in each `jax.named_scope`, by its path as the user wrote it."""
        found = dict[str, list[NodeId]]()
        for node in self.program.nodes:
            found.setdefault(self.scope(node), []).append(node.number)
        return found

    def scope(self, node: Node) -> str:
        """The path of `jax.named_scope`s around an op as the user wrote it, without JAX's transformations."""
        return "/".join(self.traced.sources.written(node.op).parts)

    @cached_property
    def classes(self) -> Classes:
        return classes(self.program)

    @cached_property
    def range_names(self) -> dict[str, int]:
        """Suggested names for ranges, each with its class of dims."""
        return range_names(self.program, self.classes, self.addresses.arguments, self.inputs, self.keys)

    @cached_property
    def inputs(self) -> Inputs:
        """The arguments that may lead with the batch."""
        # Random keys are no inputs.
        arguments = {name: value for name, value in self.addresses.arguments.items() if value not in self.keys}
        given = frozenset(self.program.arguments[: len(self.traced.in_avals)])
        return guessed_inputs(self.program, self.classes, arguments, self.traced.successors, given)

    @property
    def batches(self) -> frozenset[int]:
        """The classes of the dims that the inputs lead with. Several, if the program does not identify them."""
        return self.inputs.roots if self.inputs.is_batch else frozenset()

    @cached_property
    def replaced(self) -> frozenset[ValueId]:
        """The arguments that a result replaces in the next call, such as parameters."""
        return frozenset(self.addresses.arguments[name] for name in self.traced.successors)

    @cached_property
    def keys(self) -> Mapping[ValueId, int]:
        """The arguments and results that are random keys, each with the number of trailing dims that make up one key."""
        program, traced = self.program, self.traced
        avals = (*zip(program.arguments, traced.in_avals, strict=False), *zip(program.returned, traced.out_avals, strict=True))
        return {value: key_rank(aval) for value, aval in avals if is_key(aval)}

    def within(self, values: Patterns) -> Source:
        """Restricts patterns to these values, so that tactics claim no others."""
        found = replace(self, addresses=self.addresses.within(values, self.traced.successors))
        # What is known of the program is known of it here.
        vars(found).update({name: getattr(self, name) for name in ("classes", "range_names", "inputs", "keys", "replaced")})
        return found

    def shape(self, value: ValueId) -> tuple[int, ...]:
        """The shape that the user sees. A random key is one element: `key<fry>[8]`, not `u32[8, 2]`."""
        shape = self.program.shape(value)
        return shape[: len(shape) - self.keys.get(value, 0)]


@dataclass(frozen=True)
class State:
    """A traced program on a mesh, its table of claims, the actions that made them, and its named ranges. Immutable."""

    source: Source
    mesh: Mesh
    table: Table
    actions: tuple[Action, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def start(cls, traced: Traced, mesh: Mesh, bound: Signatures | None = None) -> Self:
        """Starts a plan on which nothing is placed. `bound` holds definitions that another program on this mesh has bound."""
        with without_collector():
            program = flatten(traced.module, mesh_given(mesh), bound)
        return cls(Source(traced, program, Addresses(traced, program), traced), mesh, Table(program))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Returns the plan itself, because it is immutable."""
        return self

    def __reduce__(self) -> Never:
        helps = ["keep its text, `plan.trace`: pt.replay(fn, mesh, text, *args) makes the plan again"]
        raise Error("a plan cannot be pickled: it holds the traced function", helps=helps)

    def by(self, redo: Callable[[State], State]) -> Self:
        """Sets how the last action is applied again."""
        return replace(self, actions=(*self.actions[:-1], replace(self.actions[-1], redo=redo)))

    @cached_property
    def coloured(self) -> tuple[str, ...]:
        """The axes of the mesh before it was refined. Each has a colour where the plan is shown."""
        return tuple(self.mesh.whole())

    @cached_property
    def decisions(self) -> Decisions:
        """Where pending sums are resolved, and which values move. All reports of a plan are read off these."""
        with without_collector():
            return decide_all(self.table, partial(donated_bytes, self.source.traced))

    @cached_property
    def decided(self) -> Self:
        """The plan as it runs: its mesh and table have the sub-axes into which its decisions split axes."""
        table = self.decisions.placements.table
        if (mesh := with_parts(self.mesh, table.axes)) is self.mesh:
            return self
        made = replace(self, mesh=mesh, table=table)
        vars(made)["decisions"] = self.decisions
        return made

    def placed_on(self, axis: Place, number: NodeId) -> bool:
        """Whether the table places an op on an axis, or on any of the sub-axes that the mesh has instead."""
        tables = (self.table.axes.get(part) for part in self.mesh.split(axis))
        return any(table is not None and table.nodes[number] is not None for table in tables)

    @cached_property
    def _known(self) -> dict[Callable[[Self], object], object]:
        return {}

    def once(self, make: Callable[[Self], T]) -> T:
        """Computes `make(self)` once, and caches it for all queries that need it."""
        if make not in self._known:
            self._known[make] = make(self)
        return cast(T, self._known[make])

    @property
    def own(self) -> int:
        """The number of leading actions that are the program's own.

        A replay makes them again, and plan files leave them out.
        """
        return sum(action.is_own for action in self.actions)

    def cited(self, number: int) -> str:
        """A tactic by its number and text, as sentences cite it: `2: ZeRO(stage=3, axis='data', params='params')`."""
        return f"{number + 1}: {self.actions[number].said}"

    def layout_text(self, value: ValueId, layout: Layout | None = None, pending: Unreduced = ()) -> str:
        """The dtype and layout of a value in text, by default as in the table: `f32[data*128, 256]`."""
        type = self.source.program.types[value]
        layout = self.table.layout(value) if layout is None else layout
        return (layout.with_pending(pending) if pending else layout).text(type.dtype)

    # --- addressing ------------------------------------------------------------------------------------------------

    def names(self, values: Patterns, dim: int | str) -> dict[str, ValueId]:
        """The values that the patterns match. If `dim` is a range name, those that have the range; or all, if none has it."""
        if isinstance(dim, int):
            return self.source.addresses.find(values)
        roots = self.ranges_named(dim)
        found = self.source.addresses.find(values)
        return {name: v for name, v in found.items() if not roots.isdisjoint(self.source.classes.dims(v))} or found

    @property
    def range_roots(self) -> dict[str, int]:
        """Every name of a range, suggested or given by a tactic, with its class of dims."""
        return {name: self.source.classes.root(root) for name, root in {**self.source.range_names, **self.labels}.items()}

    def ranges_named(self, name: str) -> set[int]:
        """The classes of dims whose range has this name, which may be a pattern: `layers/*/w1.1`."""
        accepts = pattern(name).fullmatch
        found = {root for label, root in self.range_roots.items() if "*" in name and accepts(label)}
        return found or {self.label(name)}

    def label(self, name: str) -> int:
        """The class of dims that a range name stands for. Raises Error for an unknown name."""
        known = self.range_roots
        if name not in known:
            helps = did_you_mean(
                name,
                known,
                "name one first: " + step(f'name("x", 0, "{name}")') + f"; {question(Question.RANGES)} lists all",
            )
            raise Error(f"no range is named `{name}`", helps=helps)
        return known[name]

    def dim_with(self, label: str) -> str:
        """A dim that has the range of this name, as errors say it: `dim 0 of `x``."""
        root, named = (
            self.label(label),
            ((name, self.source.classes.dims(v)) for v, name in self.source.addresses.names.items()),
        )
        return next(f"dim {dims.index(root)} of `{name}`" for name, dims in named if root in dims)

    def dim_of(self, value: ValueId, dim: int | str, name: str) -> int:
        """The number of a dim that is given by a number, perhaps negative, or by a range name.

        Raises Error if there is none.
        """
        shape, dim = self.source.shape(value), dim_number(dim)
        if isinstance(dim, str):
            return self._dim_by_label(value, dim, name)
        if not -len(shape) <= dim < len(shape):
            dims = f"its dims are 0 to {len(shape) - 1}, or from the end -1 to -{len(shape)}"
            helps = [dims if shape else "it is a scalar: leave it replicated"]
            if value in self.source.keys:
                helps = ["a random key is a single element and cannot be tiled: leave it replicated", *helps[: len(shape)]]
            raise Error(f"`{name}` has no dim {dim}: its shape is {list(shape)}", helps=helps)
        return dim % len(shape)

    def _dim_by_label(self, value: ValueId, label: str, name: str) -> int:
        shape, roots = self.source.shape(value), self.ranges_named(label)
        dims = [dim for dim, root in enumerate(self.source.classes.dims(value)[: len(shape)]) if root in roots]
        if len(dims) > 1:
            title = f"`{name}` has the range `{label}` twice: dims {' and '.join(map(str, dims))} of {list(shape)}"
            raise Error(title, helps=["say which: " + step(f'tile("{name}", {dims[0]}, ...)')])
        if not dims:
            helps = [
                f"{question(Question.RANGES)} lists the dims of each range",
                "give its dim by number: " + step(f'tile("{name}", 0, ...)'),
            ]
            raise Error(f"no dim of `{name}` has the range `{label}`: its shape is {list(shape)}", helps=helps)
        return dims[0]
