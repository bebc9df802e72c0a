"""Arguments that a function changes in place: what it returns is as `nnx.jit` leaves it, what it does not return is refused."""

# pyright: basic

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import partita as pt

MESH = pt.Mesh(data=4, model=2)
X, Y = jnp.linspace(-1, 1, 8 * 4).reshape(8, 4), jnp.ones((8, 2))
SGD = optax.sgd(0.1, momentum=0.9)
TACTICS = [
    pt.DataParallel("data", inputs=["x", "y"]),
    pt.Megatron("model", column={"net/up/kernel": 1}),
    pt.ZeRO(3, "data", params="net", optimizer="opt"),
]


class Net(nnx.Module):
    """With running statistics and a counter of random numbers, which a call changes."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.up, self.down = nnx.Linear(4, 8, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)
        self.norm, self.drop = nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x):
        return self.down(self.drop(jax.nn.tanh(self.norm(self.up(x)))))


def made() -> tuple[Net, nnx.Optimizer]:
    net = Net()
    return net, nnx.Optimizer(net, SGD, wrt=nnx.Param)


def in_place(net, opt, x, y):
    loss, grads = nnx.value_and_grad(lambda net: jnp.mean((net(x) - y) ** 2))(net)
    opt.update(net, grads)
    return loss


def returned(net, opt, x, y):
    loss = in_place(net, opt, x, y)
    return net, opt, loss


def arrays(net: Net) -> list[jax.Array]:
    return jax.tree.leaves(nnx.state(net, (nnx.Param, nnx.BatchStat, nnx.RngCount)))


def test_modules_that_a_step_changes_and_returns_are_as_nnx_jit_leaves_them():
    ours, theirs = made(), made()
    step = pt.jit(returned, mesh=MESH, tactics=TACTICS)
    for _ in range(3):
        *ours, loss = step(ours[0], ours[1], X, Y)
        expected = nnx.jit(in_place)(*theirs, X, Y)
        np.testing.assert_allclose(loss, expected, rtol=2e-4)
    for a, b in zip(arrays(ours[0]), arrays(theirs[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
    plan = step.plan(*ours, X, Y)
    assert plan.layout("net/up/kernel/value") == {"net/up/kernel/value": "f32[data, model*4]"}
    assert plan.successors["net/norm/mean/value"] == "result/0/norm/mean/value"


def test_the_state_of_a_module_counts_as_the_module():
    def step(net, x):
        out = net(x)
        return out, nnx.state(net)

    assert pt.plan(step, MESH, Net(), X).check(Net(), X) < 2e-4


@pytest.mark.parametrize("enter", [pt.plan, lambda fn, mesh, *args: pt.jit(fn, mesh=mesh)(*args)], ids=["plan", "jit"])
def test_a_change_that_is_not_returned_is_refused(enter):
    net, opt = made()
    before = jax.tree.leaves((net, opt))
    with pytest.raises(pt.Error, match=r"`in_place` changes `net/down/bias/value`, .* and \d+ more in place"):
        enter(in_place, MESH, net, opt, X, Y)
    after = jax.tree.leaves((net, opt))
    assert all(a is b for a, b in zip(before, after, strict=True))


def test_what_is_not_returned_is_named():
    def forgets_the_statistics(net, opt, x, y):
        loss = in_place(net, opt, x, y)
        return nnx.state(net, nnx.Param), opt, loss

    with pytest.raises(
        pt.Error, match=r"changes `net/drop/rngs/count/value`, `net/norm/mean/value`, `net/norm/var/value` in place"
    ):
        pt.plan(forgets_the_statistics, MESH, *made(), X, Y)


@pytest.mark.parametrize("inside", [lambda f: f, nnx.jit, nnx.remat, nnx.grad], ids=["plain", "jit", "remat", "grad"])
def test_a_module_that_is_only_read_is_not_changed(inside):
    net = Net()
    net.eval()
    assert pt.plan(lambda net, x: inside(lambda net, x: jnp.sum(net(x) ** 2))(net, x), MESH, net, X).check(net, X) < 2e-4


class Agent(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.online, self.target = nnx.Linear(4, 4, rngs=rngs), nnx.Linear(4, 4, rngs=rngs)
        self.last = nnx.Variable(jnp.zeros((8, 4)))


def synchronised(agent, x):
    agent.target.kernel[...] = agent.online.kernel[...]
    return agent.online(x)


def remembered(agent, x):
    agent.last[...] = x
    return agent.online(x)


@pytest.mark.parametrize(("step", "name"), [(synchronised, "agent/target/kernel/value"), (remembered, "agent/last/value")])
def test_what_is_changed_to_another_argument_is_lost_too(step, name):
    with pytest.raises(pt.Error, match=f"changes `{name}` in place, and does not return what it changes"):
        pt.plan(step, MESH, Agent(), X)
    plan = pt.plan(lambda agent, x: (agent, step(agent, x)), MESH, Agent(), X)
    assert plan.check(Agent(), X) < 2e-4


def test_an_attribute_that_is_no_array_any_more_is_refused():
    def named(state, x):
        y = state.count + x
        state.count = "seven"
        return y

    with pytest.raises(pt.Error, match="changes `state/count` in place"):
        pt.plan(named, MESH, Counter(jnp.zeros(())), X)


def test_a_module_that_a_function_closes_over_and_changes_is_refused_and_stays_as_it_was():
    net = Net()
    before = jax.tree.leaves(net)
    with pytest.raises(pt.Error, match=r"changes a `flax.nnx` module that it closes over"):
        pt.plan(lambda x: net(x), MESH, X)
    assert all(a is b for a, b in zip(before, jax.tree.leaves(net), strict=True))


@jax.tree_util.register_dataclass
@dataclass
class Counter:
    count: jax.Array


def test_an_object_of_any_class_counts_and_a_dict_is_the_function_s_own_copy():
    def counts(state, x):
        state.count = state.count + 1
        return x

    def scales(batch):
        batch["x"] = batch["x"] / 255
        return batch["x"].sum()

    with pytest.raises(pt.Error, match=r"changes `state/count` in place"):
        pt.plan(counts, MESH, Counter(jnp.zeros(())), X)
    batch = {"x": X}
    assert pt.plan(scales, MESH, batch).check(batch) < 2e-4


@jax.tree_util.register_dataclass
@dataclass
class Pair:
    first: jax.Array
    second: jax.Array


def test_leaves_that_change_places_are_lost_and_one_that_is_put_back_is_not():
    def swaps(pair, x):
        pair.first, pair.second = pair.second, pair.first
        return x @ pair.first

    def puts_back(pair, x):
        before, pair.second = pair.second, pair.first * 2
        y, pair.second = x @ pair.second, before
        return y

    pair = Pair(jnp.ones((4, 4)), jnp.zeros((4, 4)))
    with pytest.raises(pt.Error, match="changes `pair/first`, `pair/second` in place"):
        pt.plan(swaps, MESH, pair, X)
    assert pt.plan(puts_back, MESH, pair, X).check(pair, X) < 2e-4


class Stack(nnx.Module):
    """Layers, statistics, random numbers, and a number that is no array."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.layers = nnx.List([nnx.Linear(4, 4, rngs=rngs), nnx.Linear(4, 4, rngs=rngs)])
        self.norm, self.drop, self.calls = nnx.BatchNorm(4, rngs=rngs), nnx.Dropout(0.1, rngs=rngs), 0

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def removes_a_bias(net):
    net.layers[1].bias = None


def deletes_statistics(net):
    del net.norm.mean


def adds_a_variable(net):
    net.last = nnx.Variable(jnp.zeros(4))


def adds_a_number(net):
    net.best = 3


def counts(net):
    net.calls += 1


def grows(net):
    net.layers.append(nnx.Linear(4, 4, rngs=nnx.Rngs(1)))


def shrinks(net):
    net.layers.pop()


def forgets_random_numbers(net):
    net.drop.rngs = None


def evaluates(net):
    net.eval()


def draws(net):
    net.drop(X)


def averages(net):
    net.norm(X)


CHANGES = {
    removes_a_bias: "`net/layers/1/bias` in",
    deletes_statistics: "`net/norm/mean` in",
    adds_a_variable: "`net/last/value` in",
    adds_a_number: "`net/best` in",
    counts: "`net/calls` in",
    grows: "`net/layers/2/bias/value`, `net/layers/2/kernel/value` in",
    shrinks: "`net/layers/1` in",
    forgets_random_numbers: "`net/drop/rngs` in",
    evaluates: "`net/drop/deterministic`, `net/norm/use_running_average` in",
    draws: "`net/drop/rngs/count/value` in",
    averages: "`net/norm/mean/value`, `net/norm/var/value` in",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_becomes_of_a_module_is_lost_unless_it_is_returned(change):
    def step(net, x):
        y = net(x)
        change(net)
        return y

    def returns(net, x):
        return step(net, x), net

    with pytest.raises(
        pt.Error, match=f"`step` changes {CHANGES[change]} place, and does not return what it changes"
    ) as caught:
        pt.plan(step, MESH, Stack(), X)
    assert caught.value.helps[0].startswith("return what is changed, `return net, ...`")
    assert pt.plan(returns, MESH, Stack(), X).check(Stack(), X) < 2e-4


def test_a_module_that_is_made_inside_or_put_back_is_not_changed():
    def step(net, x):
        other, mean = nnx.clone(net), net.norm.mean
        other.norm.mean, net.norm.mean = None, None
        y = net(x) + other(x)
        net.norm.mean = mean
        return y

    assert pt.plan(step, MESH, Stack(), X).check(Stack(), X) < 2e-4


def pops(batch):
    return batch.pop("y")


def adds_to_a_dict(batch):
    batch["mask"] = None


def removes_from_a_list_inside(batch):
    batch["more"].pop()


@pytest.mark.parametrize("change", [pops, adds_to_a_dict, removes_from_a_list_inside])
def test_a_dict_or_a_list_is_the_functions_own_copy(change):
    batch = {"x": X, "y": Y, "more": [X, X]}

    def step(net, batch):
        change(batch)
        return net(batch["x"])

    net = Net()
    net.eval()
    assert pt.plan(step, MESH, net, batch).check(net, batch) < 2e-4


def test_a_module_in_a_dict_that_loses_an_attribute_is_refused():
    def step(nets, x):
        y = nets["one"](x)
        nets["one"].up.bias = nets["two"] = None
        return y

    one, two = Net(), Net()
    one.eval()
    with pytest.raises(pt.Error, match="`step` changes `nets/one/up/bias` in place"):
        pt.plan(step, MESH, {"one": one, "two": two}, X)


@jax.tree_util.register_pytree_with_keys_class
class Hooked:
    """Makes an object of its own whenever JAX rebuilds it."""

    def __init__(self, w):
        self.w, self.hook = w, object()

    def tree_flatten_with_keys(self):
        return [(jax.tree_util.GetAttrKey("w"), self.w)], None

    @classmethod
    def tree_unflatten(cls, aux, children):
        del aux
        return cls(*children)


def test_what_an_object_makes_when_it_is_rebuilt_is_not_changed():
    def step(hooked, batch):
        batch["z"] = batch.pop("x")
        return hooked.w @ batch["z"]

    assert pt.plan(step, MESH, Hooked(X.T), {"x": X}).check(Hooked(X.T), {"x": X}) < 2e-4
