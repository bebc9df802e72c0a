"""Any value, given to any parameter of a public function, is taken, or refused by an error that says what is wrong with it.

The error of a value of a wrong kind names the parameter, says what it takes, and shows the value: "`axis` takes ..., got 3". A
value of the right kind that means nothing in this program is named itself: "no value is named `nosuch`". Each call ends soon,
and takes little memory.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import inspect
import re
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings
from public_face import Public, public
from root import ROOT
from wrong_values import KINDS

import partita as pt
from partita.compiler.api.jit import Options
from partita.compiler.inputs.files import MOST_BYTES
from partita.dialects.ground.validation import shown

X, W = jnp.ones((8, 4)), jnp.ones((4, 4))
MESH = pt.Mesh(a=2, b=4)
TEXT = "mesh a=2\nfn f(x: f32[8 @a]) -> f32[8] { y[i] = x[i] return y }\nplan p { tile x.0 @a }"


def step(x: Any, w: Any) -> Any:
    """The next weights, and a loss."""
    h = pt.tag(jnp.tanh((x @ w) @ w), "h")
    return w - h.sum(0)[None], h + (x @ x.T)[:, :4]


def anything(*trees: Any, **more: Any) -> Any:
    """A program of whatever it is given: what is wrong with an argument is not what it would do with it."""
    return jax.tree.map(lambda leaf: leaf * 2 if leaf.dtype != bool else leaf, (trees, more))


@cache
def plan() -> pt.Plan:
    return pt.plan(step, MESH, X, W)


@cache
def placed() -> pt.Plan:
    return plan().tile("x", 0, "a")


def saved() -> str:
    """A program in a file."""
    path = str(Path(tempfile.mkdtemp()) / "step")
    plan().lower().save(path)
    return path


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
    "choice": 0, "before": None, "rule": "reassociate", "seeds": (), "text": "x", "file": "plan.partita",
    "path": "plan.html", "title": "x", "source": TEXT, "kernel": "main_0", "x": X, "plan": None, "axes": {"a": 2},
    "count": 2, "most": 8,
}  # fmt: skip
"""What a parameter takes, by its name: what is not fuzzed is valid."""
VALID_OF: dict[str, Any] = {
    "Tile.values": {"x": 0}, "On.values": {"x": 0}, "Mesh.sub_axes.name": "a", "Mesh.having.name": "a", "Mesh.parts.name": "a",
    "define.text": "same(x)  out[i..] = @(x[i..])", "define.function": lambda x: x, "rule.text": "f: add(x, x) => mul(2, x)",
    "constrain.text": "a, _", "Notation.plan.function": None,
    "tactics_from.file": str(ROOT / "examples" / "strategy.toml"), "tactics_from.table": "by_name",
    "Mesh.split.axis": MESH.place("a"), "load_compiled.path": saved(),
    "Notation.arguments.function": "f", "Notation.block.function": "f",
    "Graph.parse.text": "", "Mesh.parse.text": "a=2", "Mesh.is_slow.axes": ("a",), "replay.args": ("", X, W),
    "kernel.devices": MESH, "kernel.static_argnames": (), "program.static_argnames": (),
    "Defined.__call__.args": (X,), "Defined.check.args": (X,), "Plan.tile.axis": "a",
}  # fmt: skip
NAMES = {
    "args": ("trees", "args"), "kwargs": ("more",), "trees": ("trees",), "replay.mesh": ("mesh", "file", "trees"),
    "replay.args": ("text",), "Defined.__call__.args": ("x",), "Defined.check.args": ("x",), "constrain.x": ("x",),
    "Defined.__call__.kwargs.w": ("same",), "Defined.check.kwargs.w": ("same",), "Mesh.more": ("{}",),
}  # fmt: skip
"""By which names an error may name a parameter, if not by its own: arguments of the function that is traced by their paths."""
TAKES = re.compile(
    r"\b(takes|needs|must|expected|cannot be|splits into|has \d dims?, but)\b"
    r"|\bis (\"|nested too deeply|called with wrong arguments)"
)
LONGEST = 5.0
"""The most seconds of the processor that a call takes, which does not count other work on the machine."""
MOST = MOST_BYTES + (1 << 20)
"""The most bytes that Python allocates in a call: a file that never ends is read as far as a file may be large."""
SOME = 4
"""Every how many kinds `make test` tries one."""
KEYWORDS = {
    "more": ("a",),
    "parts": ("a",),
    "given": ("dim", "trips"),
    "wanted": ("all_gather", "memory", "replicated_flops"),
    "options": tuple(Options.__annotations__),
    "kwargs": ("w",),
    "coordinates": ("a",),
}
"""The names that a parameter `**name` is given."""
APART = {
    "Seed": "what tactics of users yield; `place` takes them",
    "Counts": "an answer", "Flops": "an answer",
    "Law": "what `rewrite` is given, and asks itself",
    "Traced": "what a plan starts from, and asks itself",
    "Plan.check": "JAX checks the arguments of a compiled function", "Compiled": "as `Plan.check`",
    "Jitted.__call__": "as `Plan.check`", "Jitted.lower": "as `Plan.check`", "Jitted.trace": "as `Plan.check`",
    "Jitted.eval_shape": "as `Plan.check`", "Graph.run": "as `Plan.check`",
    "CompiledGraph": "a step of `Graph.run`",
    "initialize_distributed": "with right values it waits for other processes; `test_processes` has wrong ones",
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
    if parameter == "conflict":
        return placed().conflicts[0]
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
        elif is_it or its.default is its.empty or f"{function}.{its.name}" in VALID_OF:
            put = value if is_it else valid(function, its.name)
            if its.kind is its.KEYWORD_ONLY or len(args) < list(each.parameters).index(its.name):
                kwargs[its.name] = put
            else:
                args.append(put)
    if name == "kwargs" and keyword:
        args = args[:-1]
    of = placed() if function == "Plan.resolve" else made(each.owner) if not each.is_bound else None  # pyright: ignore
    bound = each.function if of is None else getattr(of, function.split(".")[-1])
    return bound(*args, **kwargs)


def is_default(function: str, parameter: str, value: Any) -> bool:
    """Whether it is what the parameter has if it is left out, and so no wrong value."""
    its = public()[function].parameters.get(parameter)
    return its is not None and type(value) is type(its.default) is str and value == its.default


def tried(function: str, parameter: str, kind: str) -> None:
    before = (plan().trace, str(plan().layout()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = KINDS[kind]()
        if is_default(function, parameter, value):
            return
        started = time.process_time()
        tracemalloc.reset_peak()
        held = tracemalloc.get_traced_memory()[0]
        try:
            called(function, parameter, value)
        except jax.errors.UnexpectedTracerError:
            # It is JAX's to say where a tracer comes from.
            pass
        except pt.Error as error:
            assert said(error, function, parameter, value) is None
        assert time.process_time() - started < LONGEST
        assert tracemalloc.get_traced_memory()[1] - held < MOST
    assert (plan().trace, str(plan().layout())) == before


def said(error: pt.Error, function: str, parameter: str, value: object) -> str | None:
    """What is wrong with the text of an error about a value; None if nothing is."""
    text = str(error)
    if len(text) > 20_000:
        return "it is too long"
    known = NAMES.get(f"{function}.{parameter}", NAMES.get(parameter.partition(".")[0], (parameter.split(".")[-1],)))
    named = any(f"`{name.format(parameter.split('.')[-1])}" in error.title for name in known)
    if " got " in text or text.endswith(" got"):
        return None if named and TAKES.search(error.title) else f"it does not name `{parameter}`, or what it takes: {text}"
    if named and TAKES.search(error.title):
        return None
    return None if any(name in text for name in names_of(value)) else f"it does not name the value: {text}"


def names_of(value: object, *, inside: bool = True) -> list[str]:
    """As what an error may show a value of the right kind, or what of it is wrong."""
    if isinstance(value, str):
        text = str.__str__(value)
        # Of a text that is long the beginning; of one that is read, what is wrong in it.
        return (
            [text[:100], repr(text)[1:100], *(repr(sign)[1:-1] for sign in text)]
            if text
            else ["``", "''", "empty", "too early"]
        )
    if inside and isinstance(value, dict | list | tuple | set) and len(several := list(value)) < 10 and several:
        pairs = value.values() if isinstance(value, dict) else ()
        return [shown(value), *(name for each in (*several, *pairs) for name in names_of(each, inside=False))]
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = int(value)
        return [shown(value), f"{value:,}"] if abs(value) < 1 << 64 else [shown(value)]
    if isinstance(value, Path):
        return [str(value)]
    return [shown(value), getattr(value, "__name__", type(value).__name__)]


def kinds(spot: int) -> list[str]:
    """All kinds in `make fuzz`; in `make test` some of them, other ones for each parameter."""
    profile = settings.default
    return list(KINDS)[spot % SOME :: SOME] if profile is not None and profile.derandomize else list(KINDS)


@pytest.fixture(autouse=True, scope="module")
def traced_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("function", dict.fromkeys(function for function, _ in spots()))
def test_a_wrong_value_is_an_error_of_ours(function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for spot, (name, parameter) in enumerate(spots()):
        if name == function:
            for kind in kinds(spot):
                tried(name, parameter, kind)


def test_what_is_apart_is_there():
    known = {*public(), *(name.split(".")[0] for name in public())}
    assert known >= APART.keys()


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no tactics": (lambda: pt.jit(step, mesh=MESH, tactics=cast(Any, None)), "`tactics` takes a list of tactics, got None"),
    "a number for tactics": (lambda: pt.jit(step, mesh=MESH, tactics=cast(Any, 3)), "`tactics` takes a list of tactics, got 3"),
    "a list of lists of axes": (
        lambda: plan().tile("x", 0, cast(Any, [["a"]])),
        "`axis` takes the name of a mesh axis, a string, got",
    ),
    "no granularity": (lambda: plan().lower(cast(Any, None)), "`granularity` takes a string, got None"),
    "an array of inputs": (
        lambda: pt.DataParallel("a", inputs=cast(Any, np.array(["x"]))),
        "`inputs`: a pattern of names must be a string, got array",
    ),
    "an array of donated": (lambda: plan().compile(donate=cast(Any, np.array(["x"]))), "a pattern of names must be a string"),
    "an array of values": (lambda: pt.Tile(cast(Any, np.ones(3)), "a"), "`values`: a pattern of names must be a string"),
    "no plan": (lambda: pt.DataParallel("a")(cast(Any, None)), "`plan` takes a plan, got None"),
    "a plan as text": (lambda: pt.at("x", cast(Any, "FSDP")), "`tactic`: expected a tactic, got 'FSDP'"),
    "a value without a text": (lambda: plan().memory(KINDS["the hostile"]()), "got an object of type Hostile"),
    "an int that is no int32": (
        lambda: pt.plan(lambda x: x + 1, MESH, 2**40),
        "argument `x` of `<lambda>` must be an array",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_error_names_the_parameter_what_it_takes_and_what_it_got(case: str):
    wrong, said = WRONG[case]
    with pytest.raises(pt.Error, match=said):
        wrong()


def test_a_value_of_a_kind_of_string_is_kept_as_a_string():
    name, axis = np.str_("x"), np.str_("a")
    placed = plan().tile(name, cast(int, np.int64(0)), axis)
    assert placed.trace == "tile('x', 0, 'a')"
    assert pt.replay(step, MESH, placed.trace, X, W).layout() == placed.layout()
    assert repr(pt.Tile({name: 0}, axis)) == "Tile(values={'x': 0}, axis='a')"


def test_positions_that_no_integer_of_the_program_can_hold_are_an_error_of_ours():
    long = jax.ShapeDtypeStruct((2**32, 4), "float32")
    tiled = pt.plan(lambda x: x * jax.lax.broadcasted_iota("int32", x.shape, 0), pt.Mesh(a=2), long).tile("x", 0, "a")
    with pytest.raises(pt.Error, match="2147483648 does not fit int32"):
        tiled.compile().lower(long)
