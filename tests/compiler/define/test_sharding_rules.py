"""A `custom_partitioning` call with a sharding rule is an op with that definition; without one its contents are partitioned."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from jax.experimental.custom_partitioning import custom_partitioning

import partita as pt
from partita.dialects.definitions.registry import definitions

Array = Any
MESH = pt.Mesh(a=4, b=2)
X = jnp.asarray(np.random.default_rng(0).standard_normal((8, 16)), jnp.float32)
W = jnp.asarray(np.random.default_rng(1).standard_normal((16, 8)), jnp.float32)


def sine(x: Array) -> Array:
    return jax.pure_callback(lambda x: np.sin(np.asarray(x)), jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def product(x: Array, w: Array) -> Array:
    struct = jax.ShapeDtypeStruct((x.shape[0], w.shape[1]), x.dtype)
    return jax.pure_callback(lambda x, w: np.asarray(x) @ np.asarray(w), struct, x, w)


def heads(x: Array) -> Array:
    return x.reshape(x.shape[0], -1, 4).max(-1)


def running(x: Array) -> Array:
    return jnp.cumsum(x, 0)


@dataclass(frozen=True)
class Rule:
    """A function of one or two arguments, its sharding rule, and the definition that follows, if there is one."""

    function: Callable[..., Array]
    rule: Any
    said: str
    how: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        rule = "a function" if callable(self.rule) else self.rule
        return f"{self.function.__name__} {rule} {self.how}"

    @property
    def args(self) -> tuple[Array, ...]:
        return (X, W) if self.function is product else (X,)

    def wrapped(self) -> Callable[..., Array]:
        wrapped = custom_partitioning(self.function)

        def partition(mesh: Any, args: Any, result: Any) -> Any:
            return mesh, self.function, result.sharding, tuple(arg.sharding for arg in args)

        wrapped.def_partition(partition, sharding_rule=self.rule, **self.how)
        return wrapped


MATMUL = "y0[f0, f2] = @(x0[f0, f1:], x1[f1:, f2])"
RULES = [
    Rule(sine, "i j -> i j", "y0[f0, f1] = @(x0[f0, f1])"),
    Rule(sine, "... j -> ... j", "y0[f0.., f1] = @(x0[f0.., f1])"),
    Rule(sine, "... j -> ... j", "y0[f0.., f1:] = @(x0[f0.., f1:])", {"permutation_factors": ("j",)}),
    Rule(product, "i k, k j -> i j", "y0[f0, f2] = sum(f1) @(x0[f0, f1], x1[f1, f2])", {"reduction_factors": ("k",)}),
    Rule(product, "i k, k j -> i j", MATMUL),
    Rule(product, "i k, k j -> i j", MATMUL, {"need_replication_factors": ("k",)}),
    Rule(heads, "i (h d) -> i h", "y0[f0, f1] = @(x0[f0, (f1 f2)])   size f2 = 4", {"d": 4}),
    Rule(heads, "i (h d) -> i h", "y0[f0, f1:] = @(x0[f0, d:])", {"d": 4, "need_replication_factors": ("h",)}),
    Rule(running, "i j -> i j", ""),
    Rule(sine, lambda mesh, ins, outs: "i j -> i j", ""),
    Rule(sine, None, ""),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_becomes_a_definition_if_the_function_agrees_with_it(rule: Rule) -> None:
    function = rule.wrapped()
    plan = pt.plan(lambda *xs: function(*xs), MESH, *rule.args)
    kinds = [node.op_name for node in plan.source.program.nodes if node.op_name.startswith("custom_partitioning")]
    assert [definitions[kind].text.partition("   ")[2].strip() for kind in kinds] == [rule.said] * bool(rule.said)
    # Whether the contents run unpartitioned, or Partita partitions them.
    assert [each.primitive for each in plan.whole] == ["pure_callback"] * (not rule.said and rule.function is sine)
    expected = [jax.jit(function)(*rule.args)]
    first, *more = plan.arguments()
    for tiled in (plan.tile(first, 0, "a"), plan.tile(first, 1, "b"), *(plan.tile(name, 1, "a") for name in more)):
        assert disagreement([tiled.compile()(*rule.args)], expected) == "", tiled.trace


def test_a_reduction_factor_leaves_a_sum() -> None:
    function = RULES[3].wrapped()
    plan = pt.plan(lambda x, w: function(x, w), MESH, X, W).tile("x", 1, "a")
    assert plan.layout() == {"x": "f32[8, a*4]", "w": "f32[a*4, 8]", "result": "f32[8, 8]"}
    assert plan.counts()["all_reduce"] == 1 and sum(plan.counts().values()) == 1


def test_a_call_without_a_rule_is_replaced_by_its_contents() -> None:
    function = RULES[8].wrapped()
    plan = pt.plan(lambda x: function(x), MESH, X).tile("x", 1, "a")
    assert plan.layout()["result"] == "f32[8, a*4]" and not plan.whole
