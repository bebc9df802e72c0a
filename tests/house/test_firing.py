"""Every rewrite rule fires in some lowering of a program to kernels: a law that never fires is dead."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import permutations, product
from random import Random

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from models import Transformer, train_step
from strategies import NAMES, strategy
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

import partita as pt
from partita.dialects import context
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.definitions.registry import definitions
from partita.dialects.lax import OPS
from partita.dialects.program_text import read_module
from partita.dialects.ranges.factor import Factor
from partita.dialects.types import ArrayType
from partita.rewrites.decide import linearity, requirements
from partita.rewrites.decide.decide import decide
from partita.rewrites.decide.table import Claim, Table
from partita.rewrites.lower import constructors
from partita.rewrites.lower.materialise import materialise
from partita.rewrites.lower.to_spmd import to_spmd
from partita.rewrites.program.flatten import flatten
from partita.rewrites.redistribute import search as redistribute
from partita.rewrites.rules.compile import FIRED
from partita.rewrites.rules.rule_files import all_rules

MESH = pt.Mesh(a=2, b=2, c=2)
PARTS = 13
SQUARE = jax.ShapeDtypeStruct((16, 16), jnp.float32)


def layouts() -> Iterator[list[tuple[int, str]]]:
    """Axes placed on dims, in order: the ways in which up to three axes can lie on two dims."""
    for count in (1, 2, 3):
        for axes in permutations("abc", count):
            for dims in product((0, 1), repeat=count):
                yield list(zip(dims, axes, strict=True))


def layout(places: list[tuple[int, str]], pending: str = "") -> str:
    """`f32[a*b*4, c*8]{+d}`."""
    dims = ["*".join(axis for dim, axis in places if dim == at) for at in (0, 1)]
    sizes = [16 >> sum(dim == at for dim, _ in places) for at in (0, 1)]
    texts = [f"{axes}*{size}" if axes else str(size) for axes, size in zip(dims, sizes, strict=True)]
    return f"f32[{', '.join(texts)}]" + (f"{{{pending}}}" if pending else "")


def moved() -> Iterator[ModuleOp]:
    """Placed programs in their text: a value is redistributed from one layout to another, with some axes pending."""
    random = Random(0)
    every = list(layouts())
    for _ in range(12 * len(every)):
        source, target = random.choice(every), random.choice(every)
        sums = [axis for _, axis in source if random.random() < 0.5]
        monoid = random.choice(("+{}", "+{}", "pick {}", "max {}"))
        before = layout([each for each in source if each[1] not in sums], ", ".join(monoid.format(axis) for axis in sums))
        yield read_module(context(), REDISTRIBUTION.format(before=before, after=layout(target)))


REDISTRIBUTION = """builtin.module attributes {{array.mesh = "a=2, b=2, c=2"}} {{
  func.func @main(%0: !array.array<{before}>) -> !array.array<{after}> {{
    %1 = array.redistribute %0 : {before} -> {after}
    func.return %1 : !array.array<{after}>
  }}
}}"""


def linear(x: jax.Array, y: jax.Array, c: jax.Array) -> list[jax.Array]:
    """A pending sum through every law of linearity."""
    s, t = x @ y, (x * 2) @ y
    z = jax.lax.complex(s, t)
    narrow = x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16)
    flags = c > 0
    summed, _ = jax.lax.scan(lambda acc, _: (acc + x @ y, None), jnp.zeros_like(s), length=2)
    parts = [summed, s + t, s - t, -s, s * c, c * s, s / (c + 2), jax.lax.select(flags, s, t), s.sum(axis=1)]
    return [*parts, jax.lax.real(z), jax.lax.imag(z), jax.lax.conj(z), narrow.astype(jnp.float32)]


def tagged(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return pt.tag(x, "here"), pt.tag(x, "there") + 1


def looked_up(table: jax.Array, ids: jax.Array, acc: jax.Array, rows: jax.Array) -> list[jax.Array]:
    places = jnp.arange(16)[:, None] * rows
    window = jax.lax.dynamic_slice(table, (ids[0], 0), (3, 16))
    return [table[ids], acc.at[ids].add(rows), places, window, jnp.cumsum(acc, axis=0)]


def programs() -> Iterator[Table]:
    model = Transformer(1)
    for name in NAMES:
        yield pt.plan(train_step, pt.Mesh(data=4, model=2), *model.shapes()).apply(*strategy(name)).table
    yield from (make() for make in watched())


@pytest.fixture(scope="session")
def fired() -> dict[str, int]:
    """How often each rule fired, after clearing the memos of earlier programs."""
    redistribute.path.cache_clear()
    requirements.is_lawful.cache_clear()
    linearity.forget()
    FIRED.clear()
    for table in programs():
        to_spmd(materialise(decide(table)))
    every = [rule.name for rule in all_rules()["collectives"]]
    for module in moved():
        if all(FIRED[name] for name in every):
            break
        to_spmd(module)
    return dict(FIRED)


@pytest.mark.parametrize("name", [rule.name for each in all_rules().values() for rule in each])
def test_the_rule_fires_on_the_way_to_kernels(name: str, fired: dict[str, int]) -> None:
    assert fired.get(name, 0) > 0


def watched() -> Iterator[Callable[[], Table]]:
    """Makes small programs that need each law of building, of linearity and of masks."""
    yield lambda: pt.plan(tagged, MESH, SQUARE).tile("x", 0, "b").tile("x", 1, "a").table
    yield lambda: pt.plan(linear, MESH, SQUARE, SQUARE, SQUARE).tile("x", 1, "a").table
    ids = jax.ShapeDtypeStruct((16,), jnp.int32)
    looking = partial(pt.plan, looked_up, MESH, SQUARE, ids, SQUARE, SQUARE)
    yield lambda: looking().tile(["table", "acc"], 0, "a").table
    yield lambda: looking().tile("rows", 0, "b").table
    yield lambda: pt.plan(lambda x: jnp.argmax(x, 0), MESH, SQUARE).tile("x", 0, "a").table
    yield lambda: pt.plan(jnp.argmax, MESH, SQUARE).tile("a", 1, "a").table
    yield lambda: pt.plan(lambda x: jnp.sort(x, 0), MESH, SQUARE).tile("x", 0, "a").table
    yield lambda: pt.plan(lambda x: x.sum(0), pt.Mesh(a=3), SQUARE).tile("x", 0, "a", padded=True).table
    # A pool whose windows reach beyond the array, and two parts of one array that a device has both of.
    pooled = partial(pt.plan, lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3, 1), (1, 1), "SAME"), MESH, SQUARE)
    yield lambda: pooled().tile("x", 0, "a").table
    yield lambda: pt.plan(lambda x: jnp.tanh(jnp.pad(x, 1)).sum(), pt.Mesh(a=4), SQUARE).tile("x", 0, "a").table
    yield lambda: pt.plan(lambda x: jnp.concatenate([x, x]), MESH, SQUARE).tile("x", 0, "a").table
    yield lambda: pt.plan(lambda x: x.at[1:-1].set(x[:-2]), MESH, SQUARE).tile("x", 0, "a").table
    experts = jax.ShapeDtypeStruct((8, 16, 16), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.int32)
    yield lambda: pt.plan(lambda x, w, sizes: lax.ragged_dot(x, w, sizes), MESH, SQUARE, *experts).tile("w", 0, "a").table
    yield elements
    yield from (partial(of_part, number) for number in range(PARTS))


def elements() -> Table:
    """A user's op whose looked-up indices are elements: each row is added at the position of its element."""
    (definition,) = parse_definitions("segment_sum(x, ids) out[v, j] = sum(i) [v = ids[i]] * x[i, j]").values()
    name = definitions.add(definition).name
    rows, ids = ArrayType.whole("float32", (16, 16)), ArrayType.whole("int32", (16,))
    main = func.FuncOp("main", ([rows, ids], [rows]))
    op = OPS[name].of(main.body.block.args, [rows])
    main.body.block.add_ops([op, func.ReturnOp(*op.results)])
    table = Table(flatten(ModuleOp([main]), MESH))
    del definitions.added[name]
    (node,) = table.program.nodes
    index = node.signature.instance.results[0][0][0].at
    axis = MESH.place("a")
    factor = Factor(axis, 8)
    if table.misfit(node, index, factor) is None:
        table.touch(axis).nodes[0] = Claim(index, factor, 0)
    return table


def sum_of_part(number: int) -> Callable[..., jax.Array]:
    """One part of `linear`, folded to a scalar: a sum that stays pending until then costs less."""

    def part(x: jax.Array, y: jax.Array, c: jax.Array) -> jax.Array:
        return jnp.real(linear(x, y, c)[number]).sum()

    return part


def of_part(number: int) -> Table:
    return pt.plan(sum_of_part(number), MESH, SQUARE, SQUARE, SQUARE).tile("x", 1, "a").table


def lowered(table: Table) -> str:
    """The placed and the local code of a plan, decided again."""
    linearity.forget()
    placed = materialise(decide(table))
    return f"{placed}{to_spmd(placed)}"


@cache
def with_all_laws() -> list[tuple[Table, str, dict[str, int]]]:
    """Each program: its plan, its code, and the laws that fired until then."""
    found: list[tuple[Table, str, dict[str, int]]] = []
    for make in watched():
        FIRED.clear()
        table = make()
        found.append((table, lowered(table), dict(FIRED)))
    return found


# A law of masks is needed for an index to be placed at all; that its masks are needed is what its proof shows.
LAWS = [(file, rule.name) for file in ("builders", "linearity") for rule in all_rules()[file]]


@pytest.mark.parametrize(("file", "name"), LAWS)
def test_removing_a_law_changes_a_plan(file: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    concerned = [each[:2] for each in with_all_laws() if name in each[2]]
    fewer = {each: rules.without(name) if each == file else rules for each, rules in all_rules().items()}
    for module in (constructors, linearity):
        monkeypatch.setattr(module, "rules", fewer.__getitem__)
    try:
        assert any(lowered(table) != whole for table, whole in concerned)
    finally:
        linearity.forget()
