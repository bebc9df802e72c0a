"""`pt.define`: a line of index notation makes an op partitionable; a wrong line is refused."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import functools
import inspect
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from defined_ops import USES, Use, flash, label_logit, norm_of_rows, normal, pallas_matmul, sums_by_id
from xdsl.parser import Parser

import partita as pt
from partita.compiler.define.define import Defined
from partita.dialects import context
from partita.dialects.definitions.registry import definitions
from partita.dialects.reference.interpret import interpret

MESH = pt.Mesh(a=4, b=2)


def weighed(use: Use) -> Any:
    """The gradients of a function for all floating operands, with a weight for each element of each result."""
    gradient = cast(Any, jax.grad)
    floats = [n for n, x in enumerate(use.args) if x.dtype.kind == "f"]

    @functools.wraps(use.function)
    def loss(*args: Any) -> Any:
        leaves = [x for x in jax.tree.leaves(use.function(*args)) if x.dtype.kind == "f"]
        return sum(jnp.sum(jnp.sin(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape) * x) for x in leaves)

    pulled = gradient(loss, floats)
    pulled.__signature__ = inspect.signature(use.function)
    return pulled


STRATEGIES = [(use, strategy) for use in USES for strategy in use.strategies]


@pytest.mark.parametrize(("use", "strategy"), STRATEGIES, ids=str)
def test_a_defined_op_is_partitioned_forward_and_backward(use: Use, strategy: dict[str, int]):
    for function in [use.function, *([weighed(use)] if use.differentiable else [])]:
        plan = pt.plan(function, MESH, *use.args)
        for value, dim in strategy.items():
            if function is use.function or value != "result":
                plan = plan.tile(value, dim, "a")
        assert not plan.whole
        found = plan.compile()(*use.args)
        assert disagreement(jax.tree.leaves(found), jax.tree.leaves(jax.jit(function)(*use.args))) == ""


def test_a_plan_of_defined_ops_is_text_that_is_read_again_and_interpreted():
    use = USES[0]
    plan = pt.plan(use.function, MESH, *use.args).tile("x", 0, "a")
    text = str(plan.ir())
    module = Parser(context(), text).parse_module()
    module.verify()
    assert "lax.norm_of_rows" in text and str(module) == text
    found = interpret(module, [np.asarray(x) for x in use.args])
    assert disagreement(found, [use.function(*use.args)]) == ""


def test_a_definition_without_an_own_function_is_interpreted_by_its_text():
    x, w = normal(8, 16), normal(16, 4)
    plan = pt.plan(pallas_matmul, MESH, x, w).tile("x", 1, "a")
    assert disagreement(interpret(plan.ir(), [np.asarray(x), np.asarray(w)]), [x @ w]) == ""


def test_a_sum_passes_a_defined_op_that_is_linear_by_its_text():
    def both(x: Any, w: Any) -> Any:
        return pallas_matmul(x, w) + 2 * pallas_matmul(2 * x, w)

    assert pt.plan(both, MESH, normal(8, 16), normal(16, 4)).tile("x", 1, "a").counts()["all_reduce"] == 1


def test_a_backward_pass_tiles_one_result_and_sums_the_other():
    use = USES[0]
    plan = pt.plan(weighed(use), MESH, *use.args).tile("x", 0, "a")
    assert plan.layout("result/**") == {"result/0": "f32[a*2, 4, 6]", "result/1": "f32[6]"}
    assert [(each.kind, each.value) for each in plan.collectives()] == [("all_reduce", "result/1")]


def test_vmap_adds_a_leading_index():
    x, w = normal(8, 16, 4), normal(8, 4, 4)
    batched = jax.vmap(pallas_matmul)
    plan = pt.plan(batched, MESH, x, w).tile("x", 0, "a")
    assert "lax.vmap_pallas_matmul" in str(plan.spmd()) and not plan.whole
    assert disagreement([plan.compile()(x, w)], [batched(x, w)]) == ""
    labels = jnp.arange(8) % 4
    some = jax.vmap(label_logit, in_axes=(1, None, None))
    plan = pt.plan(some, MESH, normal(8, 3, 4), normal(4, 4), labels).tile("w", 1, "a")
    assert "lax.vmap_label_logit_h" in str(plan.spmd()) and plan.counts()["all_reduce"] == 1
    assert (
        disagreement([plan.compile()(normal(8, 3, 4), normal(4, 4), labels)], [some(normal(8, 3, 4), normal(4, 4), labels)])
        == ""
    )


def test_a_defined_op_has_the_derivatives_of_its_function():
    x, w = normal(8, 16), normal(16, 4)
    doubled = pt.define("double_rows(x)   out[i.., j:] = @(x[i.., j:])", _doubled)
    assert disagreement(jax.jvp(doubled, (x,), (x,)), [2 * x, 2 * x]) == ""
    assert disagreement(cast(Any, jax.linear_transpose(doubled, x))(x), [2 * x]) == ""
    positions = pt.define("top_of(x)   at[i] = @(x[i, j:])", _top)

    def picked(x: Any) -> Any:
        return jnp.sum(jnp.take_along_axis(x, positions(x)[:, None], axis=1))

    assert float(cast(Any, jax.grad)(picked)(x).sum()) == 8.0
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(pallas_matmul, (x, w), (x, w))


def _doubled(x: Any) -> Any:
    return 2 * x


def _top(x: Any) -> Any:
    return jnp.argmax(x, axis=1)


def test_an_op_runs_in_loops_and_branches():
    def step(x: Any, w: Any) -> Any:
        def trip(x: Any, _: None) -> tuple[Any, None]:
            return cast(Any, jax.checkpoint(norm_of_rows))(x, w), None

        return jnp.sum(jax.lax.scan(trip, x, None, length=3)[0])

    x, w = normal(8, 6), normal(6)
    for function in (step, cast(Any, jax.grad)(step)):
        plan = pt.plan(function, MESH, x, w).tile("x", 0, "a")
        assert disagreement([plan.compile()(x, w)], [function(x, w)]) == ""


def test_an_op_is_defined_again_and_old_plans_keep_the_old_one():
    x = normal(8, 4)
    first = added(1)

    def newest(x: Any) -> Any:
        return ADDED[0](x)

    step = pt.jit(newest, mesh=MESH, tactics=[pt.Tile({"x": 0}, "a")])
    plan = pt.plan(first, MESH, x)
    assert disagreement([step(x)], [x + 1]) == ""
    second = added(2)
    assert (first.op.name, second.op.name) == ("add_number", "add_number.2")
    assert disagreement([step(x), plan.compile()(x)], [x + 2, x + 1]) == ""
    assert "lax.add_number.2" in str(pt.plan(second, MESH, x).spmd())


ADDED: list[Defined[Any]] = []


def added(number: int) -> Defined[Any]:
    """Runs the source as a notebook cell does."""

    def add_number(x: Any) -> Any:
        return x + number

    ADDED[:] = [pt.define("add_number(x)   out[i..] = @(x[i..])", add_number)]
    return ADDED[0]


def test_a_definition_is_tried_once_for_each_kind_of_call():
    calls: list[tuple[int, ...]] = []

    def seen(x: Any) -> Any:
        calls.append(x.shape)
        return x

    op = pt.define("seen(x)   out[i..] = @(x[i..])", seen)
    pt.plan(op, MESH, normal(8, 4))
    tried = len(calls)
    pt.plan(op, MESH, normal(16, 4))
    assert calls[tried:] == [(16, 4)]
    pt.plan(op, MESH, normal(8))
    assert len(calls) > tried + 2


def test_a_definition_that_is_refused_leaves_its_name_free():
    x = normal(8, 4)
    with pytest.raises(pt.Error, match="`j` cannot be placed"):
        pt.define("total_of(x)   out[i, j] = @(x[i, j])", _normalised, example=(x,))
    assert "total_of" not in definitions
    right = pt.define("total_of(x)   out[i, j:] = @(x[i, j:])", _normalised, example=(x,))
    assert right.op.title == "total_of"
    trusted = pt.define("total_of(x)   out[i, j] = @(x[i, j])", _normalised, check=False)
    assert pt.plan(trusted, MESH, x).tile("x", 1, "a").layout("result") == {"result": "f32[8, a]"}


def test_a_refused_op_leaves_no_memo_for_the_next_op_of_its_name():
    x = normal(8, 4)
    with pytest.raises(pt.Error, match="does not take an array of shape"):
        pt.define("row_total(x)   out[i, j] = @(x[i, j])", _summed, example=(x,))
    right = pt.define("row_total(x)   out[i] = @(x[i, j:])", _summed, example=(x,))
    plan = pt.plan(right, MESH, x).tile("x", 0, "a")
    assert disagreement([plan.compile()(x)], [x.sum(1)]) == ""


def _summed(x: Any) -> Any:
    return x.sum(1)


def test_all_variadic_operands_take_the_same_number_of_arrays():
    def weighted(xs: Any, ws: Any) -> Any:
        return sum(x * w for x, w in zip(xs, ws, strict=True))

    op = pt.define("weighted(xs*, ws*)   out[i..] = @(xs*[i..], ws*[i..])", weighted)
    x = normal(8, 4)
    xs, ws = (x, x + 1, x + 2), (x, x * 2, x * 3)
    plan = pt.plan(op, MESH, xs, ws).tile("xs/1", 0, "a")
    assert disagreement([plan.compile()(xs, ws)], [weighted(xs, ws)]) == ""
    with pytest.raises(pt.Error, match="3 in `xs`, 1 in `ws`"):
        op(xs, (x,))
    with pytest.raises(pt.Error, match="must be a tuple of arrays"):
        op(xs, cast(Any, 3))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("fold", "function"), [("sum", jax.lax.cumsum), ("max", jax.lax.cummax), ("prod", jax.lax.cumprod)])
def test_a_prefix_fold_is_cut_along_its_dim(fold: str, function: Any, reverse: bool):
    def running(x: Any, reverse: bool = reverse) -> Any:
        return function(x, 1, reverse=reverse)

    name = f"running_{fold}_{reverse}".lower()
    op = pt.define(f"{name}(x)   out[i, j] = {fold}(k <= j) x[i, k]   backwards reverse", running)
    x = normal(4, 8)
    plan = pt.plan(op, MESH, x).tile("x", 1, "a")
    assert plan.layout("result") == {"result": "f32[4, a*2]"}
    assert disagreement([plan.compile()(x)], [running(x)]) == ""


def test_a_function_selects_from_blocks_and_then_from_what_it_selected():
    @pt.define("best_of_rows(x)  best[i.., k:], at[i.., k:] = top(j) x[i.., j]  extents k = |k|")
    def best_of_rows(x: Any, k: int) -> Any:
        return jax.lax.top_k(x, k)

    def two_best(x: Any) -> Any:
        return best_of_rows(x, k=2)

    x = normal(8, 64)
    plan = pt.plan(two_best, MESH, x).tile("x", 1, "a")
    assert plan.counts()["all_gather"] == 2 and plan.bytes_per_device() == 2 * 8 * (2 * 3 * 4)
    for found, wanted in zip(plan.compile()(x), jax.lax.top_k(x, 2), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_looked_up_rows_are_folded_over_an_index_of_the_ids():
    def bags(table: Any, ids: Any) -> Any:
        return table[ids].sum(1)

    op = pt.define("bags(table, ids)   out[i] = sum(v, k) [v = ids[i]] * table[v, k]", bags)
    table, ids = normal(8, 4), np.arange(16) % 8
    plan = pt.plan(op, MESH, table, ids).tile("table", 0, "a").tile("table", 1, "b")
    assert plan.counts()["all_reduce"] == 1
    assert disagreement([plan.compile()(table, ids)], [bags(table, ids)]) == ""


@pytest.mark.parametrize("size", [8, 6])
def test_a_definition_may_fold_several_arrays_over_one_index(size: int):
    @pt.define("sums_of_rows(x, y)   out[i] = sum(k) x[i, k] + sum(k) y[i, k]")
    def sums_of_rows(x: jax.Array, y: jax.Array) -> jax.Array:
        return x.sum(1) + y.sum(1)

    x, y = normal(4, size), normal(4, size)
    plan = pt.plan(sums_of_rows, MESH, x, y).tile("x", 1, "a", padded=True)
    assert plan.layout("y")["y"] == f"f32[4, a*2{' pad 6' * (size % 4 > 0)}]"
    assert plan.counts()["all_reduce"] == 1
    assert disagreement([plan.compile()(x, y)], [x.sum(1) + y.sum(1)]) == ""


def test_a_function_may_give_any_number_of_results():
    def columns(x: Any) -> Any:
        return [x[:, at] * at for at in range(x.shape[1])]

    op = pt.define("columns(x)   out*[i] = @(x[i, j:])", columns)
    x = normal(8, 3)
    plan = pt.plan(op, MESH, x).tile("x", 0, "a")
    assert set(plan.layout("result").values()) == {"f32[a*2]"}
    assert disagreement(plan.compile()(x), columns(x)) == ""


def test_code_without_a_file_is_a_module_of_its_own():
    names: dict[str, Any] = {"pt": pt}
    exec("\n\n\nop = pt.define('twofold(x)   out[i..] = @(x[i..])', lambda x: 2 * x)", names)
    other = pt.define("twofold(x)   out[i..] = @(x[i..])", _summed)
    assert (names["op"].op.name, other.op.name) == ("twofold", "_summed.twofold")


def test_blocks_that_stay_together_are_never_cut_smaller():
    x = normal(8, 32)
    with pytest.raises(pt.Error, match="`j` cannot be placed"):
        pt.define("scaled_by_8(x)   out[i.., (j b)] = @(x[i.., (j b)])   size b = 4", _scaled, example=(x,))
    right = pt.define("scaled_by_8(x)   out[i.., (j b)] = @(x[i.., (j b)])   size b = 8", _scaled)
    plan = pt.plan(right, pt.Mesh(a=4), x).tile("x", 1, "a")
    assert plan.layout("result") == {"result": "f32[8, a*8]"}
    (stop,) = pt.plan(right, pt.Mesh(a=8), x).tile("x", 1, "a").blocked
    assert (stop.dim, stop.reason) == (1, "it has 4 blocks of 8 that stay together, which 8 devices do not divide")


def _scaled(x: Any) -> Any:
    blocks = x.reshape(*x.shape[:-1], -1, 8)
    return (blocks / jnp.max(jnp.abs(blocks), -1, keepdims=True)).reshape(x.shape)


def test_a_callback_that_raises_on_other_shapes_is_tried_on_the_given_ones():
    op = pt.define("host_total(x)   out[i] = @(x[i, j:])", _host_total)
    plan = pt.plan(op, MESH, normal(8, 6)).tile("x", 0, "a")
    assert disagreement([plan.compile()(normal(8, 6))], [normal(8, 6).sum(1)]) == ""


def _host_total(x: Any) -> Any:
    def total(x: Any) -> Any:
        assert x.shape[1] == 6
        return np.asarray(x).sum(1)

    return jax.pure_callback(total, jax.ShapeDtypeStruct(x.shape[:1], x.dtype), x)


def _normalised(x: Any) -> Any:
    return x / jnp.sum(x, axis=1, keepdims=True)


def test_a_defined_function_is_called_like_the_function():
    x, ids = normal(16, 4), jnp.arange(16) % 8
    assert sums_by_id(x, ids=ids, num_segments=8).shape == sums_by_id(x, ids, 8).shape == (8, 4)
    assert repr(sums_by_id).startswith("<sums_by_id(x, ids)   out[v, j..] = sum(i) [v = ids[i]] * x[i, j..]")
    out, top = flash(normal(4, 6), normal(8, 6), normal(8, 2), blocks=4)
    assert (out.shape, top.shape) == ((4, 2), (4,))


def test_the_name_of_a_refused_definition_is_free_for_another_function():
    with pytest.raises(pt.Error, match="`d` cannot be placed"):
        pt.define("own_softmax(x)   out[b.., d] = @(x[b.., d])", jax.nn.softmax, example=(normal(8, 6),))
    op = pt.define("own_softmax(x)   out[b.., d:] = @(x[b.., d:])", _softmax)
    assert op(normal(8, 6)).shape == (8, 6)


def _softmax(x: Any) -> Any:
    return jax.nn.softmax(x, -1)
