"""A constraint in a program is a point of redistribution: it is kept exactly, and what is around it lies as it did."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everywhere import agrees
from figures import Figures
from generated import examples
from generated_constraints import Constrained, ConstrainedCase, Spec, constrained_cases
from hypothesis import given as drawing
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jax.stages import Compiled
from lowered import executions, interpreted
from tolerance import differs

import partita as pt
from partita.benchmarks import hlo
from partita.compiler.api.plan import Plan
from partita.dialects.lax import LaxOp
from partita.dialects.reference.interpret import interpret
from partita.dialects.types import ArrayType

Function = Callable[..., Any]


def at(mesh: dict[str, int], *spec: Any) -> NamedSharding:
    return NamedSharding(jax.make_mesh(tuple(mesh.values()), tuple(mesh), axis_types=(AxisType.Auto,) * len(mesh)), P(*spec))


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32) / 4


D8, X4Y2 = {"d": 8}, {"x": 4, "y": 2}


def wsc(x: Any, *spec: Any, mesh: dict[str, int] = D8) -> Any:
    return lax.with_sharding_constraint(x, at(mesh, *spec))


def equal(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def planned(function: Function, mesh: dict[str, int], args: tuple[Any, ...], specs: tuple[P, ...]) -> tuple[Plan, list[Any]]:
    placed = [jax.device_put(arg, at(mesh, *spec)) for arg, spec in zip(args, specs, strict=True)]
    return pt.plan(function, pt.Mesh(**mesh), *placed).apply(pt.Annotated()), placed


# --- after a tactic that has placed the dim of a constraint on another axis --------------------------------------------------


AB = pt.Mesh(a=4, b=2)


def doubled(*spec: Any) -> Function:
    return lambda x: jnp.sin(pt.constrain(x * 2, *spec))


def hidden(x: Any, params: dict[str, Any]) -> Any:
    return pt.constrain(jax.nn.relu(x @ params["w1"]), "a, b") @ params["w2"]


@pytest.mark.parametrize(
    ("function", "tile", "layout"),
    [
        (doubled("a, _"), ("x", 0, "b"), "f32[a*4, 24]"),
        (doubled("a*b, _"), ("x", 0, "b"), "f32[a*b*2, 24]"),
        (doubled("_, b*a"), ("x", 1, "a"), "f32[16, b*a*3]"),
        (doubled("a, _"), ("x", 0, "a.1:2"), "f32[a.0:2*a.1:2*4, 24]"),
        (hidden, ("x", 0, "b"), "f32[a*4, b*8]"),
        (hidden, ("params/w1", 1, "a"), "f32[a*4, b*8]"),
    ],
    ids=["another axis", "both", "the second dim", "a part", "rows of a model", "columns of a model"],
)
def test_a_constraint_moves_what_a_tactic_has_placed_otherwise(function: Function, tile: Any, layout: str) -> None:
    args = (random(16, 24), {"w1": random(24, 16), "w2": random(16, 4)}) if function is hidden else (random(16, 24),)
    plan = pt.plan(function, AB, *args).tile(*tile).apply(pt.Annotated())
    assert [each.state for each in plan.annotations] == ["applied"]
    assert plan.layout("constrain#0") == {"constrain#0": layout}
    assert plan.check(*args) < 1e-5


# --- between two constraints -------------------------------------------------------------------------------------------------


def rows_and_columns(x: Any) -> Any:
    return wsc(jnp.sin(wsc(jnp.cos(x), "d")), None, "d")


def experts(x: Any, w: Any) -> Any:
    return wsc(jnp.einsum("gecm,emf->gecf", wsc(x, None, "d"), w), "d")


def ulysses(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    """Attention of a sequence that is stored in parts, by heads."""
    q, k, v = (wsc(jnp.einsum("btm,mhd->bthd", x, w), None, None, "d") for w in (wq, wk, wv))
    p = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bqhd,hdm->bqm", wsc(jnp.einsum("bhqk,bkhd->bqhd", p, v), None, "d"), wo)


def newton_schulz(w: Any, g: Any) -> Any:
    """Matrices that are stored by rows, and computed each on one device."""
    x = wsc(g, "d")
    x = x / (jnp.linalg.norm(x, axis=(1, 2), keepdims=True) + 1e-6)
    for _ in range(3):
        x = 1.5 * x - 0.5 * (x @ x.transpose(0, 2, 1)) @ x
    return w - 0.1 * wsc(x, None, "d")


def crossed(a: Any, b: Any) -> Any:
    return wsc(a + b, None, ("x", "y"), mesh=X4Y2)


HEADS = (random(2, 128, 32), random(32, 8, 8), random(32, 8, 8), random(32, 8, 8), random(8, 8, 32))
CUBES = (random(16, 16, 16), random(16, 16, 16), random(16, 16, 16))

# A function, its mesh, its arguments, their shardings; the bytes that a device receives, and by which collectives.
BESIDE_JIT: dict[str, tuple[Function, dict[str, int], tuple[Any, ...], tuple[P, ...], int, dict[str, int]]] = {
    "rows, then columns": (rows_and_columns, D8, (random(64, 64),), (P("d"),), 1_792, {"all_to_all": 1}),
    "experts": (experts, D8, (random(8, 8, 4, 16), random(8, 16, 16)), (P("d"), P("d")), 3_584, {"all_to_all": 2}),
    "Ulysses": (ulysses, D8, HEADS, (P(None, "d"), P(), P(), P(), P()), 28_672, {"all_to_all": 4}),
    "Newton-Schulz": (
        newton_schulz,
        D8,
        (random(8, 32, 32), random(8, 32, 32) + 1),
        (P(None, "d"), P(None, "d")),
        7_168,
        {"all_to_all": 2},
    ),
    "two axes to one dim": (crossed, X4Y2, CUBES[:2], (P("y", None, "x"),) * 2, 1_792, {"all_to_all": 1}),
    "two axes to one dim, of arguments": (
        lambda a, b, c: c + (a + b),
        X4Y2,
        CUBES,
        (P("y", None, "x"), P("y", None, "x"), P(None, ("x", "y"))),
        1_792,
        {"all_to_all": 1},
    ),
    "a gather for its use": (
        lambda w, x: x @ wsc(w),
        D8,
        (random(64, 64), random(32, 64)),
        (P("d"), P("d")),
        14_336,
        {"all_gather": 1},
    ),
    "an argument in columns": (
        lambda w: jnp.sin(wsc(w, None, "d")),
        D8,
        (random(64, 64),),
        (P("d"),),
        1_792,
        {"all_to_all": 1},
    ),
}


POSITIONS = 1_000
"""XLA counts what computes positions too: a device looks up what it sends to each other one, where `jax.jit` gathers."""


def flops(compiled: Compiled) -> float:
    """What a device computes, as XLA counts it: it has no number for what it counts as transcendental alone."""
    return cast(Any, compiled.cost_analysis()).get("flops", 0)


@pytest.mark.parametrize("name", BESIDE_JIT)
def test_a_plan_of_an_annotated_program_receives_at_most_what_jit_receives(name: str) -> None:
    function, mesh, args, specs, bytes, kinds = BESIDE_JIT[name]
    plan, placed = planned(function, mesh, args, specs)
    jitted, compiled = (each.lower(*placed).compile() for each in (jax.jit(function), plan.compile()))
    jit = hlo.received(hlo.collectives(jitted.as_text() or ""))
    assert {kind: count for kind, count in plan.counts().items() if count} == kinds
    assert plan.bytes_per_device() == bytes <= jit
    assert not plan.conflicts
    assert [each.state for each in plan.annotations] == ["applied"] * len(plan.annotations)
    assert flops(compiled) <= 1.04 * flops(jitted) + POSITIONS
    # Every device computes its share.
    whole = pt.plan(function, pt.Mesh(**mesh), *args).flops_per_device().known
    assert plan.flops_per_device().known <= 1.02 * whole / plan.mesh.size
    agrees(plan, function, *placed)


@pytest.mark.parametrize("name", BESIDE_JIT)
def test_its_gradient_keeps_every_constraint_and_agrees(name: str) -> None:
    function, mesh, args, specs, *_ = BESIDE_JIT[name]

    def gradient(*args: Any) -> Any:
        return jax.grad(lambda *args: jnp.sum(jnp.sin(function(*args))), tuple(range(len(args))))(*args)

    plan, placed = planned(gradient, mesh, args, specs)
    assert not plan.conflicts
    assert all(each.is_applied for each in plan.annotations)
    agrees(plan, gradient, *placed)


def test_where_claims_of_constraints_meet_the_op_takes_the_one_that_receives_least_and_explain_says_so() -> None:
    def function(a: Any, b: Any) -> Any:
        return wsc(a, "d") * jnp.sum(wsc(b, None, "d", None), 2)

    plan = pt.plan(function, pt.Mesh(d=8), random(64, 64), random(64, 64, 2)).apply(pt.Annotated())
    assert not plan.conflicts
    assert plan.bytes_per_device() == 1_792
    told = plan.explain("result")
    assert "of what is asked of `mul`, this costs a device the least: operand 0 `constrain#0` on dim 0" in told


def test_an_argument_that_constraints_want_on_several_dims_stays_whole_under_later_tactics_and_explain_says_so() -> None:
    def function(x: Any, y: Any) -> Any:
        return wsc(jnp.sin(x), "d"), wsc(jnp.cos(x), None, "d"), x * y

    x, y = random(64, 64), random(64, 64)
    plan = pt.plan(function, pt.Mesh(d=8), x, y).apply(pt.Annotated())
    for later in (plan.tile("y", 0, "d"), plan.apply(pt.DataParallel("d", inputs="y"))):
        assert not later.conflicts
        assert later.layout(["x", "y", "result/2"]) == {"x": "f32[64, 64]", "y": "f32[d*8, 64]", "result/2": "f32[d*8, 64]"}
        agrees(later, function, x, y)
    told = plan.explain("x")
    assert "whole along `d`, and each use takes its part of it: a use of dim 0 `x` on dim 0, from 1: Annotated" in told
    split = plan.tile("y", 0, "d.0:2")
    assert not split.conflicts
    agrees(split, function, x, y)
    # A tactic that names it still lays it out.
    tiled = plan.tile("x", 0, "d")
    assert tiled.layout("x") == {"x": "f32[d*8, 64]"}
    assert "whole along" not in tiled.explain("x")


def test_constraints_that_meet_receive_least_where_one_annotated_takes_them_all() -> None:
    def function(a: Any, b: Any) -> Any:
        return wsc(a * 2, "d") + wsc(b * 2, None, "d")

    plan = pt.plan(function, pt.Mesh(d=8), random(64, 64), random(64, 64))
    together = plan.apply(pt.Annotated())
    one_by_one = plan.apply(pt.Annotated("constrain#0"), pt.Annotated("constrain#1"))
    assert together.bytes_per_device() == 1_792 <= one_by_one.bytes_per_device()
    assert not one_by_one.conflicts


# --- one constraint ---------------------------------------------------------------------------------------------------------


def test_a_side_that_nothing_else_claims_takes_the_constraints_layout() -> None:
    x, v = random(64, 32), random(32, 16)
    plan = pt.plan(lambda x, v: jnp.tanh(wsc(x @ v, "d")), pt.Mesh(d=8), x, v).apply(pt.Annotated())
    assert plan.layout(["x", "v", "result"]) == {"x": "f32[d*8, 32]", "v": "f32[32, 16]", "result": "f32[d*8, 16]"}
    assert plan.bytes_per_device() == 0


def test_claims_of_one_side_do_not_cross_to_the_other() -> None:
    def function(x: Any) -> Any:
        return jnp.sin(wsc(jnp.cos(x), None, "d")) * 2

    plan, placed = planned(function, D8, (random(64, 64),), (P("d"),))
    assert plan.layout(["x", "cos#0", "result"]) == {"x": "f32[d*8, 64]", "cos#0": "f32[d*8, 64]", "result": "f32[64, d*8]"}
    later = plan.tile("x", 0, "d")
    assert later.layout() == plan.layout()
    agrees(plan, function, *placed, derived=True)


def test_a_later_tactic_ends_at_a_constraint() -> None:
    said = pt.plan(lambda x: wsc(x * 2, None, "y", mesh=X4Y2) + 1, pt.Mesh(**X4Y2), random(16, 8)).apply(pt.Annotated())
    plan = said.tile("x", 0, "x")
    assert plan.layout(["x", "mul#0", "result"]) == {"x": "f32[x*4, y*4]", "mul#0": "f32[x*4, y*4]", "result": "f32[16, y*4]"}


def test_an_argument_keeps_its_layout_where_its_constraint_makes_it_whole() -> None:
    plan, _ = planned(lambda w: (wsc(w), w + 1), D8, (random(64, 64),), (P("d"),))
    assert plan.layout() == {"w": "f32[d*8, 64]", "result/0": "f32[64, 64]", "result/1": "f32[d*8, 64]"}


def test_a_value_has_each_of_two_constraints_in_a_row() -> None:
    plan, _ = planned(lambda x: wsc(wsc(x, None, "d"), "d") + 1, D8, (random(64, 64),), (P(),))
    assert [each.state for each in plan.annotations] == ["applied"] * 2
    assert plan.layout(["constrain#0", "constrain#1"]) == {"constrain#0": "f32[64, d*8]", "constrain#1": "f32[d*8, 64]"}
    assert plan.bytes_per_device() == 1_792


def test_a_dim_without_an_axis_is_whole_beside_one_that_is_open() -> None:
    open = P.UNCONSTRAINED
    x = jax.device_put(random(16, 16), at(X4Y2, "x", "y"))
    for spec, layout in (((None, open), "f32[16, y*8]"), ((open, None), "f32[x*4, 16]"), ((open, open), "f32[x*4, y*8]")):
        plan = pt.plan(lambda x, spec=spec: jnp.sin(wsc(x, *spec, mesh=X4Y2)), pt.Mesh(**X4Y2), x).apply(pt.Annotated())
        assert plan.layout("result") == {"result": layout}


def test_in_a_trip_of_a_loop_a_constraint_moves_what_the_trip_has() -> None:
    def function(x: Any, w: Any) -> Any:
        return lax.scan(lambda y, _: (wsc(jnp.tanh(wsc(y, None, "d") * w[None]), "d"), None), x, None, length=3)[0]

    x, w = random(64, 64), random(64)
    plan = pt.plan(function, pt.Mesh(d=8), jax.device_put(x, at(D8, "d")), w).apply(pt.Annotated())
    assert {kind: count for kind, count in plan.counts().items() if count} == {"all_to_all": 6}
    assert all(each.is_applied for each in plan.annotations)
    agrees(plan, function, x, w, derived=True)


def test_a_rewritten_program_keeps_its_points() -> None:
    def function(x: Any, v: Any, w: Any) -> Any:
        return wsc(jnp.sin(wsc((x @ v) @ w, "d")), None, "d")

    x = jax.device_put(random(64, 32), at(D8, "d"))
    plan = pt.plan(function, pt.Mesh(d=8), x, random(32, 16), random(16, 64)).apply(pt.Annotated())
    again = plan.rewrite("reassociate")
    assert again.layout("result") == plan.layout("result") == {"result": "f32[64, d*8]"}
    assert again.bytes_per_device() == plan.bytes_per_device() == 1_792
    assert [each.state for each in again.annotations] == ["applied"] * 3


# --- the order of axes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["cb", "bc"])
def test_the_axes_of_an_argument_keep_their_order_whatever_other_arguments_bring(order: str) -> None:
    b, c = jax.device_put(random(16, 4), at(X4Y2, ("x", "y"))), jax.device_put(random(16, 4), at(X4Y2, "y"))
    args = [{"b": b, "c": c}[name] for name in order]
    function = (lambda c, b: c + b) if order == "cb" else (lambda b, c: c + b)
    plan = pt.plan(function, pt.Mesh(**X4Y2), *args).apply(pt.Annotated())
    assert plan.layout() == {"b": "f32[x*y*2, 4]", "c": "f32[y*8, 4]", "result": "f32[x*y*2, 4]"}
    assert plan.bytes_per_device() == 32
    assert plan.compile()(*args).sharding.spec == P(("x", "y"))
    agrees(plan, function, *args)


@pytest.mark.parametrize("axes", [("x", "y"), ("y", "x")])
def test_the_axes_of_a_constraint_keep_their_order(axes: tuple[str, str]) -> None:
    x = jax.device_put(random(16, 4), at(X4Y2, tuple(reversed(axes))))
    plan = pt.plan(lambda x: wsc(x * 2, axes, mesh=X4Y2), pt.Mesh(**X4Y2), x).apply(pt.Annotated())
    assert plan.compile()(x).sharding.spec == P(axes)
    assert all(each.is_applied for each in plan.annotations)


# --- what became of it ------------------------------------------------------------------------------------------------------


def test_what_is_altered_says_to_what_and_by_which_tactic() -> None:
    plan, _ = planned(lambda x: pt.constrain(x * 2, "x, _") + 1, X4Y2, (random(16, 16),), (P("y"),))
    assert [each.state for each in plan.annotations] == ["applied", "applied"]
    altered = plan.tile("constrain#0", 0, "y")
    assert altered.annotations[1].state == "altered to f32[x*y*2, 16]: by 3: tile('constrain#0', 0, 'y')"


def test_a_tactic_that_is_earlier_wins_and_the_constraint_holds_at_its_value() -> None:
    def function(x: Any) -> Any:
        return jnp.sin(wsc(jnp.cos(x), None, "d"))

    x = random(64, 64)
    plan = pt.plan(function, pt.Mesh(d=8), x).apply(pt.DataParallel("d", inputs="x"), pt.Annotated())
    assert plan.layout(["cos#0", "constrain#0", "result"]) == {
        "cos#0": "f32[d*8, 64]",
        "constrain#0": "f32[64, d*8]",
        "result": "f32[d*8, 64]",
    }
    assert [each.state for each in plan.annotations] == ["applied"]
    agrees(plan, function, x)


@pytest.mark.parametrize("constrained", ["data, _", "data*model, _", "data, model", "model, data"])
def test_a_dim_that_does_not_divide_is_refused_with_its_line_and_the_others_are_applied(constrained: str) -> None:
    def function(x: Any) -> Any:
        return pt.constrain(pt.constrain(x * 2, constrained) + 1, "_, model")

    x, mesh = random(6, 8), pt.Mesh(data=4, model=2)
    plan = pt.plan(function, mesh, x).apply(pt.Annotated())
    said, applied = plan.annotations
    is_kept = constrained == "model, data"
    by_data = "dim 0 has 6 elements, which do not divide over `data` (4 devices); make it 8 long, or pad it: "
    cure = "plan.tile('constrain#0', 0, 'data', padded=True)"
    state = {
        "data, _": f"refused: {by_data}{cure} before pt.Annotated()",
        "data*model, _": "refused: dim 0 has 6 elements, which do not divide over `data*model` (8 devices); make it 8 long, "
        "or pad it: plan.tile('constrain#0', 0, ('data', 'model'), padded=True) before pt.Annotated()",
        "data, model": f"altered to f32[6, model*4]: {by_data}{cure} before pt.Annotated()",
        "model, data": "applied",
    }
    assert said.state == state[constrained]
    assert f"test_constraints.py:{function.__code__.co_firstlineno + 1}" in str(said.source)
    assert applied.is_applied and plan.layout("result") == {"result": "f32[6, model*4]"}
    assert ("an annotation of the program is not kept: `constrain#0` at" in str(plan)) is not is_kept
    if is_kept:
        plan.compile()
        return
    with pytest.warns(pt.PlacementWarning, match="an annotation of the program is not kept: `constrain#0`") as caught:
        compiled = plan.compile()
        again = pt.jit(function, mesh=mesh, tactics=[pt.Annotated()])(x)
    assert len(caught) == 2
    equal(compiled(x), x * 2 + 1)
    equal(again, x * 2 + 1)
    # What the reason says to write is applied.
    cure = said.state.partition("pad it: plan.")[-1].removesuffix(" before pt.Annotated()")
    padded = pt.replay(function, mesh, f"{cure}\nAnnotated()", x)
    assert [each.is_applied for each in padded.annotations] == [True, True]
    agrees(padded, function, x)


def test_the_same_on_a_mesh_of_more_devices_than_that_of_the_constraint() -> None:
    two = {"x": 2, "y": 2}

    def function(x: Any) -> Any:
        return wsc(wsc(x * 2, "x", "y", mesh=two) + 1, None, "y", mesh=two)

    x = random(6, 8)
    plan = pt.plan(function, pt.Mesh(**X4Y2), x).apply(pt.Annotated())
    assert [each.state.split(":")[0] for each in plan.annotations] == ["altered to f32[6, y*4]", "applied"]
    with pytest.warns(pt.PlacementWarning, match="dim 0 has 6 elements, which do not divide over `x`"):
        equal(plan.compile()(x), x * 2 + 1)


# --- generated --------------------------------------------------------------------------------------------------------------


def text(spec: Spec, shape: tuple[int, ...], mesh: dict[str, int]) -> list[str | None]:
    """What a layout shows of each dim; None for an open one."""
    found = list[str | None]()
    for axes, extent in zip(spec, shape, strict=True):
        axes = None if axes is None else [axis for axis in axes if mesh[axis] > 1]
        left = extent // int(np.prod([mesh[axis] for axis in axes or ()], initial=1))
        found.append(None if axes is None else "*".join([*axes, *([str(left)] if left > 1 or not axes else [])]))
    return found


def spec_of(layout: str) -> Spec:
    """What `plan.annotations` shows, as it was said: "a*b, whole, _"."""
    return tuple(None if dim == "_" else () if dim == "whole" else tuple(dim.split("*")) for dim in layout.split(", "))


def is_kept(layout: str, wanted: list[str | None]) -> bool:
    """Whether a text such as `f32[data*4, 16]` has the wanted dims."""
    dims = layout[layout.index("[") + 1 : layout.rindex("]")].split(", ") if wanted else []
    return all(each is None or each == dim for each, dim in zip(wanted, dims, strict=True))


def local_shapes(plan: Plan) -> Counter[tuple[object, tuple[int, ...]]]:
    """What the constraints of the device-local program say, and the shapes that they have there."""
    ops = (op for op in plan.spmd().walk() if isinstance(op, LaxOp) and op.name == "lax.constrain")
    return Counter((op.params["layout"], cast(ArrayType, op.results[0].type).shape) for op in ops)


def shares(plan: Plan) -> Counter[tuple[object, tuple[int, ...]]]:
    """What the constraints of the program say, and the shapes of a device's blocks."""
    found = Counter[tuple[object, tuple[int, ...]]]()
    for node in plan.source.program.nodes:
        if node.op_name == "constrain" and isinstance(node.op, LaxOp):
            spec, shape = cast(Spec, node.op.params["layout"]), plan.source.program.shape(node.results[0])
            local = plan.table.layout(node.results[0]).local_shape
            sizes = [int(np.prod([plan.mesh[axis] for axis in axes or ()], initial=1)) for axes in spec]
            assert all(
                axes is None or own * size == all for axes, own, size, all in zip(spec, local, sizes, shape, strict=True)
            )
            found[spec, local] += 1
    return found


@pytest.mark.parametrize("kind", ["forward", "gradients"])
def test_each_claim_that_is_listed_as_applied_is_the_layout_that_runs(kind: str, figures: Figures) -> None:
    seen: Counter[str] = Counter()

    @examples(60 if kind == "forward" else 30)
    @drawing(constrained_cases(kind == "gradients"))
    def run(case: ConstrainedCase) -> None:
        # A constraint says what lies on devices.
        case = replace(case, tactics=tuple(replace(each, loop="") for each in case.tactics))
        hypothesis.note(f"{case.plan.trace}\n{case.start.source.traced.module}")
        check(case)
        seen.update(each.state.split()[0] for each in case.plan.annotations)

    run()
    figures.add(f"constraints of generated programs applied, {kind}", seen["applied"], of=seen.total())


def check(case: ConstrainedCase) -> None:
    program, plan = case.program, case.plan
    assert isinstance(program, Constrained)
    mesh = dict(case.mesh)
    # Nothing alters what a program says but a tactic.
    assert {each.state for each in case.annotated.annotations} <= {"applied"}
    said = {number for number, action in enumerate(plan.actions) if action.is_said}
    assert all({claim.tactic for claim, _ in met.claims} - said for met in plan.table.conflicts.values())
    if not case.start.whole:
        assert local_shapes(case.annotated) == shares(case.annotated)
    for each in plan.annotations:
        name = each.value
        if each.is_applied and plan.mesh is plan.mesh.whole():
            shape = plan.source.program.shape(plan.source.addresses.find(name)[name])
            wanted = text(spec_of(each.layout) if shape else (), shape, mesh)
            # A dim of an argument that no axis tiles is open.
            open = [dim if name not in plan.arguments() or not (dim or "").isdigit() else None for dim in wanted]
            assert is_kept(plan.layout(name)[name], open), each
    always, _ = executions(plan.spmd())
    assert always == plan.counts()
    args = program.arrays()
    if not case.start.whole:
        given = (*args, *map(np.asarray, case.start.source.traced.consts))
        whole = interpret(case.start.source.traced.module, given)
        assert differs(interpreted(plan, given), whole, program) == ""
    if case.share < 10:
        compiled = plan.compile()
        assert differs(jax.tree.leaves(compiled(*args)), jax.tree.leaves(jax.jit(program.function)(*args)), program) == ""
        again = pt.replay(program.function, pt.Mesh(**mesh), plan.trace, *case.given)
        assert (again.layout(), again.counts()) == (plan.layout(), plan.counts())
