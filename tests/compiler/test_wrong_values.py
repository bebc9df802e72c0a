"""Any value, given to any parameter of a public function, is taken, or refused by an error that says what it takes."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from public_face import Public, public
from wrong_values import KINDS

import partita as pt
from partita.compiler.api.jit import Options

X, W = jnp.ones((8, 4)), jnp.ones((4, 4))
MESH = pt.Mesh(a=2, b=4)
TEXT = "mesh a=2\nfn f(x: f32[8 @a]) -> f32[8] { y[i] = x[i] return y }\nplan p { tile x.0 @a }"


def step(x: Any, w: Any) -> Any:
    """The next weights, and a loss."""
    h = pt.tag(jnp.tanh(x @ w), "h")
    return w - h.sum(0), h + (x @ x.T)[:, :4]


def anything(*trees: Any, **more: Any) -> Any:
    """A program of whatever it is given: what is wrong with an argument is not what it would do with it."""
    return jax.tree.map(lambda leaf: leaf * 2 if leaf.dtype != bool else leaf, (trees, more))


@cache
def plan() -> pt.Plan:
    return pt.plan(step, MESH, X, W)


@cache
def placed() -> pt.Plan:
    return plan().tile("x", 0, "a")


OBJECTS: dict[str, Callable[[], Any]] = {
    "Plan": plan,
    "Graph": lambda: placed().lower("collective"),
    "Compiled": lambda: placed().compile(),
    "CompiledGraph": lambda: placed().lower("collective").compile(),
    "Jitted": lambda: pt.jit(anything, mesh=MESH),
    "Notation": lambda: pt.parse(TEXT),
    "Mesh": lambda: MESH,
    "Defined": lambda: pt.define("same(x)  out[i..] = @(x[i..])")(lambda x: x),
    "Composable": lambda: pt.then(pt.DataParallel("a", inputs="x")),
    "Rewriting": lambda: pt.plan(lambda x, w: (x @ w) @ w, MESH, X, W).rewrites()[0],
    "Tactic": lambda: pt.DataParallel("a", inputs="x"),
}
"""An object of each class that has public methods; of a tactic, one with its valid fields."""

VALID: dict[str, Any] = {
    "values": "x", "inputs": "x", "params": "w", "optimizer": (), "results": (), "donate": (), "at": "**", "what": "x",
    "dim": 0, "axis": "a", "data": "a", "model": "b", "range": "batch", "stage": 3, "label": "B", "name": "p",
    "fn": anything, "function": anything, "mesh": MESH, "args": (X, W), "tactics": (pt.Resolve(),), "tactic": pt.Resolve(),
    "conflict": None, "choice": 0, "before": None, "rule": "reassociate", "seeds": (), "text": "x", "file": "plan.partita",
    "path": "plan.html", "title": "x", "source": TEXT, "kernel": "main_0", "x": X, "plan": None, "axes": {"a": 2},
}  # fmt: skip
"""What a parameter takes, by its name: what is not fuzzed is valid."""
VALID_OF: dict[str, Any] = {
    "Tile.values": {"x": 0}, "Mesh.sub_axes.name": "a", "Mesh.having.name": "a", "Mesh.parts.name": "a",
    "define.text": "same(x)  out[i..] = @(x[i..])", "define.function": lambda x: x, "rule.text": "f: add(x, x) => mul(2, x)",
    "constrain.text": "a, _", "Notation.plan.function": None,
    "Notation.arguments.function": "f", "Notation.block.function": "f",
    "Graph.parse.text": "", "Mesh.parse.text": "a=2", "Mesh.is_slow.axes": ("a",), "replay.args": ("", X, W),
    "Defined.__call__.args": (X,), "Defined.check.args": (X,),
}  # fmt: skip
KEYWORDS = {
    "more": ("a",),
    "parts": ("a",),
    "given": ("dim", "trips"),
    "wanted": ("all_gather", "memory", "replicated_flops"),
    "options": tuple(Options.__annotations__),
    "kwargs": ("w",),
}
"""The names that a parameter `**name` is given."""
APART = {
    "Composable.__call__": "every combinator has its own",
    "Tactic.__call__": "a tactic of the library has its own",
    "Seed": "what tactics of users yield; `place` takes them",
    "Counts": "an answer", "Flops": "an answer",
    "Law": "what `rewrite` is given, and asks itself",
    "Traced": "what a plan starts from, and asks itself",
    "Plan.check": "JAX checks the arguments of a compiled function",
    "Compiled": "JAX checks the arguments of a compiled function",
    "Jitted.__call__": "JAX checks the arguments of a compiled function", "Jitted.lower": "as a call",
    "Jitted.partitioned": "a step of a call", "Jitted.planned": "a step of a call", "Jitted.kind": "a step of a call",
    "Defined.split": "a step of a call", "Defined.group": "a step of a call", "Defined.array": "a step of a call",
    "Defined.check_static": "a step of a call", "Defined.run": "a step of a call",
    "CompiledGraph": "a step of `Graph.run`",
}  # fmt: skip
"""What stands among the public functions, but is not called by users, each with the reason."""


def spots() -> Iterator[tuple[str, str]]:
    """Each parameter of each public function; of a parameter `**name`, each keyword."""
    for name, each in public().items():
        if name in APART or name.split(".")[0] in APART:
            continue
        for parameter in each.parameters.values():
            if parameter.name != "rest":
                keywords = KEYWORDS[parameter.name] if parameter.kind is parameter.VAR_KEYWORD else ("",)
                yield from ((name, f"{parameter.name}.{keyword}".rstrip(".")) for keyword in keywords)


def made(owner: type) -> Any:
    if issubclass(owner, pt.Tactic) and owner is not pt.Tactic:
        parameters = inspect.signature(owner).parameters.values()
        return owner(**{p.name: valid(owner.__name__, p.name) for p in parameters if p.default is p.empty})
    return OBJECTS[owner.__name__]()


def valid(function: str, parameter: str) -> Any:
    if parameter in ("plan", "before"):
        return plan()
    return VALID_OF.get(f"{function}.{parameter}", VALID.get(parameter))


def called(function: str, parameter: str, value: Any) -> Any:
    """The function with this value of one parameter, and with valid ones of all that it needs besides."""
    each: Public = public()[function]
    name, _, keyword = parameter.partition(".")
    args, kwargs = list[Any](), dict[str, Any]()
    for its in each.parameters.values():
        is_it = its.name == name
        if its.kind is its.VAR_POSITIONAL:
            given = valid(function, its.name) or ()
            args += [value, *given[1:]] if is_it else given
        elif its.kind is its.VAR_KEYWORD:
            kwargs |= {keyword: value} if is_it else {}
        elif is_it or its.default is its.empty:
            put = value if is_it else valid(function, its.name)
            if its.kind is its.KEYWORD_ONLY or len(args) < list(each.parameters).index(its.name):
                kwargs[its.name] = put
            else:
                args.append(put)
    if name == "kwargs" and keyword:
        args = args[:-1]
    bound = each.function if each.is_bound else getattr(made(each.owner), function.split(".")[-1])  # pyright: ignore
    return bound(*args, **kwargs)


def tried(function: str, parameter: str, kind: str) -> None:
    before = (plan().trace, str(plan().layout()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            called(function, parameter, KINDS[kind]())
        except pt.Error as error:
            assert str(error)
            assert len(str(error)) < 20_000
    assert (plan().trace, str(plan().layout())) == before


@pytest.mark.parametrize("function", dict.fromkeys(function for function, _ in spots()))
def test_a_wrong_value_is_an_error_of_ours(function: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name, parameter in spots():
        if name == function:
            for kind in KINDS:
                tried(name, parameter, kind)
