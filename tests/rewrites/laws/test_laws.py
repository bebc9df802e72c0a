"""Laws of programs: where each applies, what it makes there, and that the program means the same afterwards."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from figures import Figures
from generated import Case, cases, examples
from hypothesis import given
from lowered import interpreted
from models import Transformer, train_step
from tolerance import differs

import partita as pt
from partita.compiler.api.plan import Plan
from partita.dialects.reference.interpret import interpret
from partita.rewrites.laws.law import Site
from partita.rewrites.laws.library import PROVED, library_laws
from partita.rewrites.laws.rule_check import kinds_of
from partita.rewrites.laws.rule_laws import ByRule, checked_law
from partita.rewrites.rules.compile import CompiledRule
from partita.rewrites.rules.parse import parse
from partita.rewrites.rules.rule_files import rules

Array = Any
MESH = pt.Mesh(data=4, model=2)


def arrays(*shapes: tuple[int, ...]) -> list[Array]:
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


def ops(plan: Plan) -> Counter[str]:
    """The ops that compute."""
    return Counter(node.op_name for node in plan.source.program.nodes if not node.signature.instance.moves)


def same(before: Plan, after: Plan, args: list[Array]) -> None:
    for old, new in zip(*(interpret(plan.source.traced.module, args) for plan in (before, after)), strict=True):
        np.testing.assert_allclose(new, old, rtol=2e-4, atol=2e-4)
    after.source.traced.module.verify()


X, W, V, U, C = (6, 4), (4, 8), (4, 8), (8, 3), (8,)


@pytest.mark.parametrize(
    ("law", "fn", "shapes", "gone", "new"),
    [
        ("distribute", lambda x, w, v: x @ (w + v), (X, W, V), {}, {"dot_general": 1}),
        ("factor", lambda x, w, v: x @ w + x @ v, (X, W, V), {"dot_general": 1}, {}),
        ("factor", lambda x, w, v: (w.T @ x.T).T + x @ v, (X, W, V), {"dot_general": 1}, {}),
        ("reassociate", lambda x, w, u: (x @ w) @ u, (X, W, U), {}, {}),
        ("reassociate", lambda x, w, u: jnp.einsum("ml,lk,bk->bm", u.T, w.T, x), (X, W, U), {}, {}),
        ("scale_last", lambda x, c, u: (x * c) @ u, ((6, 8), (6, 1), U), {}, {}),
        ("scale_first", lambda x, w, c: (x @ w) * c[None], (X, W, C), {}, {}),
        ("divide_last", lambda x, w: (x / 3.0) @ w, (X, W), {}, {}),
        ("sum_product", lambda x, y: (x * y).sum(1), (X, X), {"mul": 1, "reduce_sum": 1}, {"dot_general": 1}),
        ("one_factor", lambda x, y, z: x * y + x * z, (X, X, X), {"mul": 1}, {}),
        ("stack", lambda x, w, v: (x @ w) * jnp.tanh(x @ v), (X, W, V), {"dot_general": 1}, {"concatenate": 1, "slice": 2}),
    ],
)
def test_the_law_applies_and_the_program_means_the_same(
    law: str,
    fn: Callable[..., Array],
    shapes: tuple[tuple[int, ...], ...],
    gone: dict[str, int],
    new: dict[str, int],
) -> None:
    args = arrays(*shapes)
    before = pt.plan(fn, MESH, *args)
    after = before.rewrite(law)
    assert ops(after) - ops(before) == Counter(new)
    assert ops(before) - ops(after) == Counter(gone)
    same(before, after, args)


@pytest.mark.parametrize(
    ("law", "fn", "shapes"),
    [
        # The factor has the range that is summed, so it cannot leave the product.
        ("scale_last", lambda x, c, u: (x * c[None]) @ u, ((6, 8), C, U)),
        # The bias does not have the range that is summed.
        ("factor", lambda x, w, v: x @ w + v, (X, W, (6, 8))),
        # An op between the products.
        ("reassociate", lambda x, w, u: jnp.tanh(x @ w) @ u, (X, W, U)),
        # A tag is a name, which a law does not remove.
        ("reassociate", lambda x, w, u: pt.tag(x @ w, "h") @ u, (X, W, U)),
        # A product in a precision of its own.
        ("factor", lambda x, w, v: jnp.dot(x, w, precision="highest") + x @ v, (X, W, V)),
        # The second weight is made from the first product.
        ("stack", lambda x, w: x @ (x @ w), ((8, 8), (8, 8))),
    ],
)
def test_the_law_does_not_apply(law: str, fn: Callable[..., Array], shapes: tuple[tuple[int, ...], ...]) -> None:
    before = pt.plan(fn, MESH, *arrays(*shapes))
    with pytest.raises(pt.Error, match=f"`{law}` applies nowhere in this program"):
        before.rewrite(law)


@pytest.mark.parametrize(
    ("law", "kinds"),
    [
        ("twice: x + x => x * 2", "cfiu"),
        ("powers: exp(x) * exp(y) => exp(x + y)", "cf"),
        ("inverse: log(exp(x)) => x", "f"),
        ("root: sqrt(x * x) => abs(x)", "f"),
        ("largest: max(x, x) => x", "cfiu"),
        ("nothing: x - x => 0", "cfiu"),
        ("morgan: not(and(x, y)) => or(not(x), not(y))", "biu"),
        ("sums: reduce_sum(-x) => -reduce_sum(x)", "cfiu"),
        ("shift: reduce_max(exp(x)) => exp(reduce_max(x))", "f"),
        ("transposed: dot(dot(x, y), z) => dot(dot(y, z), x)", "cfiu"),
    ],
)
def test_a_rule_is_a_law_for_some_dtypes(law: str, kinds: str) -> None:
    assert "".join(sorted(kinds_of(*parse(law)))) == kinds


@pytest.mark.parametrize("law", rules("programs").rules, ids=lambda law: law.name)
def test_a_rule_of_the_library_is_a_law_for_floats(law: CompiledRule) -> None:
    assert checked_law(law.rule) == library_laws()[law.name]
    assert kinds_of(law.rule) >= PROVED


@pytest.mark.parametrize(
    "law",
    [
        "log: log(x * y) => log(x) + log(y)",
        "root: sqrt(x * x) => x",
        "scaled: reduce_max(x * y) => reduce_max(x) * y",
        "outside: dot(x, exp(y)) => exp(dot(x, y))",
        "forgets: dot(x, y + z) => dot(x, y) + z",
        # Large numbers, and integers that wrap around.
        "bounded: min(x, 50) => x",
        "remainder: rem(x, 40) => x",
        # Where y does not have the range, its sum has more terms.
        "spread: reduce_sum(x + y) => reduce_sum(x) + reduce_sum(y)",
    ],
)
def test_a_false_law_is_refused_with_the_arrays_that_show_it(law: str) -> None:
    with pytest.raises(pt.Error, match=r"is not a law: its sides differ") as error:
        pt.rule(law)
    assert "for x = " in str(error.value)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("a: sort(x) => x", "a rule about programs cannot name `sort`"),
        ("a: integer_pow(x) => x * x", "`a` has a left side that cannot be computed"),
        ("a: foo(x) => x", "a rule about programs cannot name `foo`"),
        ("a: exp(x, y) => x", "`exp` takes 1 of the 2 arrays that `a` gives it"),
        ("a: exp(xs) => xs", "`xs` in `a` is neither a variable nor an op"),
        ("a: x + y => y + x where x != y", "a rule about programs has no condition: `a`"),
        ("a: x + y => y + x\nb: x * y => y * x", "`text` takes one rule, got 2"),
        ("a: x + y", "the rule is not finished"),
        ("", "`text` takes one rule, got 0"),
    ],
)
def test_a_text_that_is_not_a_rule_about_programs(text: str, title: str) -> None:
    with pytest.raises(pt.Error) as error:
        pt.rule(text)
    assert error.value.title == title


def test_an_op_of_a_users_rule_is_rewritten_by_its_pattern() -> None:
    def fn(x: Array, y: Array) -> Array:
        with jax.named_scope("gate"):
            gate = jnp.exp(x) * jnp.exp(y)
        return gate + jnp.exp(y) * jnp.exp(x)

    args = arrays(X, X)
    before = pt.plan(fn, MESH, *args)
    law = pt.rule("powers: exp(x) * exp(y) => exp(x + y)")
    assert (ops(before) - ops(before.rewrite(law, at="gate"))) == Counter(mul=1, exp=1)
    assert (ops(before) - ops(before.rewrite(law))) == Counter(mul=2, exp=2)
    same(before, before.rewrite(law), args)


def layers(w: Array, x: Array) -> Array:
    for number in range(3):
        with jax.named_scope(f"layer{number}"):
            x = x + jnp.tanh(jnp.sin(x @ w[number]) @ w[number])
    return jnp.sum(x**2)


def test_layers_are_computed_again_from_what_enters_them() -> None:
    args = arrays((3, 8, 8), (4, 8))
    before = pt.plan(jax.value_and_grad(layers), MESH, *args)
    after = before.rewrite("recompute", at="layer*")
    more = Counter(node.op_name for node in after.source.program.nodes) - Counter(
        node.op_name for node in before.source.program.nodes
    )
    # Of each layer: both products, the sine that the second one reads, and the derivatives of both functions.
    assert {kind: more[kind] for kind in ("dot_general", "sin", "cos", "tanh")} == {
        "dot_general": 6,
        "sin": 3,
        "cos": 3,
        "tanh": 3,
    }
    barriers = {id(node.op) for node in after.source.program.nodes if node.op_name == "optimization_barrier"}
    assert len(barriers) == 3
    same(before, after, args)


def test_a_rule_of_comparisons_applies() -> None:
    args = arrays(X, X)
    before = pt.plan(lambda x, y: (x > y) * 1.0, MESH, *args)
    after = before.rewrite("turned: gt(x, y) => lt(y, x)")
    assert ops(after)["lt"] == ops(before)["gt"] == 1
    same(before, after, args)


def test_each_of_several_backward_passes_computes_its_own_forward_pass_again() -> None:
    def steps(w: Array, x: Array) -> Array:
        for _ in range(2):
            w = w - 0.1 * jax.grad(layers)(w, x)
        return w

    args = arrays((3, 8, 8), (4, 8))
    before = pt.plan(steps, MESH, *args)
    after = before.rewrite("recompute", at="layer*")
    assert len({id(node.op) for node in after.source.program.nodes if node.op_name == "optimization_barrier"}) == 6
    same(before, after, args)


def test_a_tagged_value_is_computed_again_from_what_is_stored() -> None:
    def fn(w: Array, x: Array) -> Array:
        return jnp.sum(jnp.sin(pt.tag(jnp.exp(x @ w), "h") @ w))

    args = arrays((8, 8), (4, 8))
    before = pt.plan(jax.grad(fn), MESH, *args)
    after = before.rewrite("recompute", at="h")
    assert (ops(after) - ops(before))["exp"] == 1
    same(before, after, args)


def test_without_a_backward_pass_nothing_is_computed_again() -> None:
    plan = pt.plan(layers, MESH, *arrays((3, 8, 8), (4, 8)))
    with pytest.raises(pt.Error, match="`recompute` needs a backward pass"):
        plan.rewrite("recompute", at="layer*")


@pytest.mark.parametrize("kind", ["forward", "gradients"])
def test_a_generated_plan_means_the_same_after_any_laws(kind: str, figures: Figures) -> None:
    seen: Counter[str] = Counter()

    @examples(50)
    @given(cases(kind == "gradients"), st.permutations(sorted(library_laws())))
    def run(case: Case, laws: list[str]) -> None:
        plan = any_laws(case.plan, laws)
        for law in (law for law in library_laws().values() if isinstance(law, ByRule)):
            assert [*law.sites(case.plan.source.program)] == each_alone(case.plan, law)
        seen.update(programs=1, rewritten=plan is not case.plan)
        if plan is case.plan or case.start.whole:
            return
        plan.source.traced.module.verify()
        args = (*case.program.arrays(), *map(np.asarray, case.start.source.traced.consts))
        whole = interpret(case.start.source.traced.module, args)
        assert differs(interpret(plan.source.traced.module, args), whole, case.program) == ""
        assert differs(interpreted(plan, args), whole, case.program) == ""

    run()
    figures.add("generated programs that laws rewrote", seen["rewritten"], of=seen["programs"])
    assert 6 * seen["rewritten"] >= seen["programs"]


def each_alone(plan: Plan, law: ByRule) -> list[Site]:
    """The places of a law, each op looked at by itself."""
    program = plan.source.program
    found = ((node, match) for node in program.nodes if (match := law.match(program, node)) is not None)
    return [
        Site(node.results[0], tuple(program.nodes[n].results[0] for n in match.nodes), *law.saved(program, match))
        for node, match in found
    ]


@pytest.mark.parametrize("law", rules("programs").rules, ids=lambda law: law.name)
def test_of_places_that_are_alike_one_tells_where_the_law_applies(law: CompiledRule) -> None:
    plan, by_rule = pt.plan(train_step, MESH, *Transformer(3).shapes()), checked_law(law.rule)
    assert [*by_rule.sites(plan.source.program)] == each_alone(plan, by_rule)


def test_places_that_differ_only_in_how_often_a_value_is_read_are_not_alike() -> None:
    def fn(x: Array, a: Array, b: Array) -> tuple[Array, ...]:
        once, twice = x @ a, (x + 1) @ a
        return once @ b, twice @ b, jnp.exp(twice)

    plan, law = pt.plan(fn, MESH, *arrays((64, 32), (32, 4), (4, 32))), library_laws()["reassociate"]
    assert isinstance(law, ByRule)
    places = [*law.sites(plan.source.program)]
    assert places == each_alone(plan, law)
    assert len({each.flops for each in places}) == 2


def any_laws(plan: Plan, laws: list[str]) -> Plan:
    """The plan after those of the laws that apply."""
    for law in laws:
        with suppress(pt.Error):
            plan = plan.rewrite(law)
    return plan


def test_a_rule_says_that_it_is_tested_unless_it_has_a_proof() -> None:
    rule = parse("halves: dot(x + x, y) => dot(x, y) + dot(x, y)", "rule")[0]
    assert checked_law(rule).evidence == "tested on 120 random instances of each dtype"
    assert checked_law(rule, lambda _: "proved: by sums of products").evidence == "proved: by sums of products"
