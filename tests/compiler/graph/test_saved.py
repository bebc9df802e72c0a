"""Saved programs: they load in a process without the model's code, and equal what was saved."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportMissingTypeStubs=false

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import optax
import pytest
from documents import users_environment
from jax import export
from root import ROOT

import partita as pt
from partita.compiler.graph.graph import Graph
from partita.compiler.graph.saved import file as saved_file
from partita.compiler.jax_private import jax, jnp

MESH = pt.Mesh(data=4, model=2)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((16, 8), np.float32)
W = RNG.standard_normal((8, 8), np.float32) / 3


class Layer(NamedTuple):
    w: Any
    bias: Any


def arrays(tree: Any) -> list[np.ndarray]:
    bare = (jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in jax.tree.leaves(tree))
    return [np.asarray(each) for each in bare]


def assert_equal(found: Any, wanted: Any) -> None:
    for one, other in zip(arrays(found), arrays(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def layers(params: Any, x: Any, *, scale: Any = 1.0, mode: str = "tanh") -> Any:
    for each in params:
        x = jnp.tanh(x @ each.w + each.bias[None]) if mode == "tanh" else x @ each.w
    return {"out": x * scale, "norm": (x * x).sum(), "none": None}


def params() -> list[Layer]:
    return [Layer(W + at, np.full(8, at, np.float32)) for at in range(2)]


def adam_step() -> tuple[Callable[..., Any], Any, Any]:
    optimizer = optax.adam(1e-2)

    def step(params: Any, opt: Any, x: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda params: (jnp.tanh(x @ params["w"]) ** 2).mean())(params)
        updates, opt = optimizer.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt, loss

    params = {"w": W}
    return step, params, optimizer.init(params)


def zero_plan() -> tuple[pt.Plan, tuple[Any, ...]]:
    step, params, opt = adam_step()
    args = params, opt, X
    tactics = pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params", optimizer="opt")
    return pt.plan(step, MESH, *args).apply(*tactics), args


def closed_over() -> pt.Plan:
    table = jnp.asarray(RNG.standard_normal((64, 1024), np.float32))
    return (
        pt.plan(lambda x: x @ table[:8, :] + jnp.arange(1024.0)[None], MESH, X).tile("x", 0, "data").tile("const/0", 1, "model")
    )


PLANS: dict[str, Callable[[], tuple[pt.Plan, tuple[Any, ...]]]] = {
    "rows": lambda: (pt.plan(lambda x, w: jnp.tanh(x @ w), MESH, X, W).tile("x", 0, "data").tile("w", 1, "model"), (X, W)),
    "ZeRO": zero_plan,
    "classes": lambda: (pt.plan(layers, MESH, params(), X).tile("params/*/w", 1, "model"), (params(), X)),
    "closed over": lambda: (closed_over(), (X,)),
    "padded": lambda: (pt.plan(lambda x: x.sum(0), MESH, X[:7]).tile("x", 0, "data", padded=True), (X[:7],)),
    "cyclic": lambda: (pt.plan(lambda x: x.reshape(4, 4, 8).sum(0), MESH, X).tile("x", 0, "data"), (X,)),
    "keys": lambda: (
        pt.plan(lambda key, x: (jax.random.split(key)[0], x + jax.random.normal(key, x.shape)), MESH, jax.random.key(1), X),
        (jax.random.key(1), X),
    ),
    "bfloat16": lambda: (
        pt.plan(lambda x, y: x @ y.T, MESH, jnp.bfloat16(X), jnp.bfloat16(X)).tile("x", 0, "data"),
        (jnp.bfloat16(X), jnp.bfloat16(X)),
    ),
    "narrow": lambda: (
        pt.plan(lambda x: x + x, MESH, jnp.arange(8).astype("int4")).tile("x", 0, "data"),
        (jnp.arange(8).astype("int4"),),
    ),
    "scalars": lambda: (pt.plan(lambda x, n: (x * n, n + 1), MESH, X, 3), (X, 3)),
    "one device": lambda: (pt.plan(lambda x: jnp.cumsum(x, 0), pt.Mesh(), X), (X,)),
    "loop": lambda: (pt.plan(lambda x: jnp.exp(x).sum(0), MESH, X).tile("x", 0, "t:4"), (X,)),
    "no arguments": lambda: (pt.plan(lambda: jnp.arange(8) ** 2, MESH), ()),
    "returned": lambda: (pt.plan(lambda x, y: (y, x + 1), MESH, X, W).tile("x", 0, "data"), (X, W)),
}


@pytest.mark.parametrize("granularity", ["whole", "collective"])
@pytest.mark.parametrize("name", PLANS)
def test_a_saved_plan_equals_the_plan(name: str, granularity: str, tmp_path: Path) -> None:
    plan, args = PLANS[name]()
    path = str(tmp_path / "step.partita-program")
    graph = plan.lower(granularity)
    graph.save(path)
    loaded = pt.load_compiled(path)
    wanted = graph.run(*args)
    for _ in range(2):
        found = loaded(*args)
        assert_equal(found, wanted)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            assert one.sharding.is_equivalent_to(other.sharding, one.ndim)


ALONE = """
import sys
import jax
jax.config.update("jax_num_cpu_devices", 8)
import numpy as np
import partita as pt

for file in sys.argv[1:]:
    given = np.load(file + ".npz")
    args = [given[f"arg_{at}"] for at in range(len(given.files))]
    for devices in (None, jax.devices()[::-1]):
        step = pt.load_compiled(file, devices=devices)
        assert step.graph.traced is None
        results = jax.tree.leaves(step(*args))
    np.savez(file + ".out.npz", *map(np.asarray, results))
assert not {"optax", "pickle_of_models"} & {*sys.modules}, "none of the model's code"
"""


def test_a_fresh_process_without_the_models_code_loads_and_runs_it(tmp_path: Path) -> None:
    wanted, files = dict[str, Any](), list[str]()
    for name in ("rows", "closed over", "loop", "padded"):
        plan, args = PLANS[name]()
        file = str(tmp_path / name)
        plan.compile().save(file)
        np.savez(f"{file}.npz", **{f"arg_{at}": each for at, each in enumerate(args)})
        wanted[file] = plan.compile()(*args)
        files.append(file)
    alone = users_environment() | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT / ".src")}
    ran = subprocess.run(
        [sys.executable, "-c", ALONE, *files], env=alone, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    for file in files:
        with np.load(f"{file}.out.npz") as found:
            # XLA's options are others there.
            for name, other in zip(found.files, arrays(wanted[file]), strict=True):
                np.testing.assert_allclose(found[name], other, rtol=1e-5, atol=1e-5)


# --- how it is called -------------------------------------------------------------------------------------------------------


def test_results_are_dicts_and_lists_that_the_next_call_takes(tmp_path: Path) -> None:
    plan, args = zero_plan()
    step, path = plan.compile(), str(tmp_path / "step")
    step.save(path)
    loaded = pt.load_compiled(path)
    params, opt, x = args
    mine, theirs = (params, opt), (params, opt)
    for _ in range(3):
        *mine, loss = loaded(*mine, x)
        *theirs, wanted = step(*theirs, x)
        assert float(loss) == float(wanted)
    assert isinstance(mine[1], tuple) and set(mine[1][0]) == {"count", "mu", "nu"}
    assert_equal(mine[1][0]["mu"], theirs[1][0].mu)


def test_results_are_like_a_tree_that_is_given(tmp_path: Path) -> None:
    plan, args = zero_plan()
    path = str(tmp_path / "step")
    plan.lower().save(path)
    like = jax.eval_shape(plan.source.traced.function.fn, *args)
    found = pt.load_compiled(path, like=like)(*args)
    assert jax.tree.structure(found) == jax.tree.structure(like)
    with pytest.raises(pt.Error, match="`like` must have the leaves") as error:
        pt.load_compiled(path, like={"loss": X})
    assert "`result/0/w` is missing" in str(error.value)


def test_leaves_are_found_by_their_names(tmp_path: Path) -> None:
    path = str(tmp_path / "layers")
    pt.plan(layers, MESH, params(), X, scale=2.0, static_argnames="mode").lower().save(path)
    loaded, wanted = pt.load_compiled(path), layers(params(), X, scale=2.0)
    # In a dict, `bias` comes first.
    as_dicts = [{"w": each.w, "bias": each.bias} for each in params()]
    for given in (params(), as_dicts, as_dicts):
        found = loaded(given, X, scale=2.0)
        assert found["none"] is None
        np.testing.assert_allclose(found["out"], wanted["out"], rtol=1e-5)


WRONG: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "another shape": (
        lambda f: f(params(), X[:3], scale=2.0),
        ["`x` of `layers` is f32[3, 8], but the saved program takes f32[16, 8]"],
    ),
    "another dtype": (lambda f: f(params(), X.astype(int), scale=2.0), ["`x` of `layers` is i32[16, 8]"]),
    "no array": (lambda f: f(params(), "x", scale=2.0), ["`x` of `layers` must be an array, got 'x', a str"]),
    "a leaf too few": (lambda f: f([*params()[:1], {"w": W}], X, scale=2.0), ["`params/1/bias` is missing"]),
    "a leaf too many": (lambda f: f([*params(), params()[0]], X, scale=2.0), ["`params/2/w` was not there"]),
    "an argument too few": (
        lambda f: f(params(), X),
        ["called with wrong arguments", "scale", "it takes layers(params, x, *, scale)"],
    ),
    "a static argument": (
        lambda f: f(params(), X, scale=2.0, mode="tanh"),
        ["unexpected keyword argument 'mode'", "`mode` has the value with which it was saved: 'tanh'"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_call_than_was_saved_is_an_error_that_says_what_it_takes(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "layers")
    pt.plan(layers, MESH, params(), X, scale=2.0, static_argnames="mode").lower().save(path)
    loaded, (call, says) = pt.load_compiled(path), WRONG[name]
    for _ in range(2):
        with pytest.raises(pt.Error) as error:
            call(loaded)
        for each in says:
            assert each in str(error.value)
        loaded(params(), X, scale=2.0)


def test_it_says_what_a_call_takes(tmp_path: Path) -> None:
    path = str(tmp_path / "step")
    for name, takes in {"closed over": "x", "keys": "key x", "bfloat16": "x y", "classes": "params/0/w params/0/bias"}.items():
        plan, args = PLANS[name]()
        plan.lower().save(path)
        shapes = pt.load_compiled(path).shapes()
        assert [*shapes][:2] == takes.split() and shapes == plan.lower().compile().shapes()
        assert [(each.shape, each.dtype) for each in shapes.values()] == [(x.shape, x.dtype) for x in jax.tree.leaves(args)]
    graph = PLANS["rows"]()[0].lower()
    assert Graph.parse(graph.text()).compile().shapes() == graph.compile().shapes()


def test_donation_is_restated(tmp_path: Path) -> None:
    plan, args = zero_plan()
    path = str(tmp_path / "step")
    plan.compile(donate=("params", "opt")).save(path)
    loaded = pt.load_compiled(path)
    params, opt, _ = loaded(*args)
    loaded(params, opt, X)
    assert params["w"].is_deleted()
    with pytest.raises(pt.Error, match="was donated"):
        loaded(params, opt, X)


# --- device sets ------------------------------------------------------------------------------------------------------------


def test_a_program_of_kernels_is_saved_with_its_device_sets(tmp_path: Path) -> None:
    rows = [pt.Tile({"x": 0}, "data")]
    first = pt.kernel(lambda x, w: jnp.tanh(x @ w), devices=pt.Mesh(data=4).on("left"), tactics=rows)
    second = pt.kernel(lambda x: (x * x).sum(), devices=pt.Mesh(data=2).on("right"), tactics=rows)

    def loss(w: Any, x: Any) -> Any:
        return second(first(x, w))

    program: Any = pt.program(jax.value_and_grad(loss))
    path = str(tmp_path / "program")
    program.graph(W, X).save(path)
    loaded = pt.load_compiled(path)
    assert list(loaded.graph.sets) == ["left", "right"]
    assert_equal(loaded(W, X), program(W, X))
    mapped = pt.load_compiled(path, devices={"left": jax.devices()[4:], "right": jax.devices()[:2]})
    assert mapped(W, X)[0].sharding.device_set == {*jax.devices()[:2]}


def test_a_plan_on_parts_of_its_mesh_is_saved(tmp_path: Path) -> None:
    def f(x: Any, w: Any) -> Any:
        with jax.named_scope("first"):
            h = jnp.tanh(x @ w)
        with jax.named_scope("second"):
            return (h @ w.T).sum(1)

    plan = pt.plan(f, pt.Mesh(stage=2, data=4), X, W).tile("x", 0, "data").apply(pt.On({"first": 0, "second": 1}, "stage"))
    path = str(tmp_path / "stages")
    plan.lower().save(path)
    assert_equal(pt.load_compiled(path)(X, W), plan.lower().run(X, W))


def test_too_few_devices_and_other_platforms_are_errors(tmp_path: Path) -> None:
    plan, _ = PLANS["rows"]()
    path = str(tmp_path / "rows")
    plan.lower().save(path, platforms=["tpu", "cuda"])
    with pytest.raises(pt.Error, match="was saved for tpu, cuda, and this process has cpu"):
        pt.load_compiled(path)
    plan.lower().save(path, platforms=["cpu", "tpu"])
    with pytest.raises(pt.Error, match="takes 8 devices for the mesh data=4, model=2, got 4"):
        pt.load_compiled(path, devices=jax.devices()[:4])
    large = pt.plan(lambda x: x + 1, pt.Mesh(data=16), X).tile("x", 0, "data")
    large.lower().save(path)
    with pytest.raises(pt.Error, match="needs 16 devices, but there are 8"):
        pt.load_compiled(path)


# --- what cannot be saved ---------------------------------------------------------------------------------------------------


def test_a_callback_is_refused_with_its_line(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        jax.debug.print("{}", x.sum())
        return x + 1

    with pytest.raises(pt.Error, match="a program that calls Python cannot be saved") as error:
        pt.plan(f, MESH, X).lower().save(str(tmp_path / "f"))
    assert "test_saved.py" in str(error.value) and "jax.debug.print" in str(error.value)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "platforms, says",
    [
        (3, "`platforms` takes"),
        ([], "`platforms` takes a list of platforms, got ()"),
        (["gpu"], "got 'gpu'"),
        (["tpus"], "did you mean `tpu`?"),
    ],
)
def test_unknown_platforms_are_refused(platforms: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(pt.Error) as error:
        PLANS["rows"]()[0].lower().save(str(tmp_path / "f"), platforms=platforms)
    assert says in str(error.value)


def test_a_graph_from_text_or_from_a_file_is_not_saved(tmp_path: Path) -> None:
    graph, path = PLANS["rows"]()[0].lower(), str(tmp_path / "f")
    graph.save(path)
    for each in (Graph.parse(graph.text()), pt.load_compiled(path)):
        with pytest.raises(pt.Error, match="cannot be saved"):
            each.save(path)


# --- the file ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "f"
    pt.plan(lambda x: x + 1, MESH, X).lower().save(str(path))
    return path.read_bytes()


def test_a_file_that_is_cut_or_changed_anywhere_is_an_error(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f"
    for at in range(0, len(small), 13):
        changed = bytearray(small)
        changed[at] ^= 1 << at % 8
        for data in (small[:at], bytes(changed)):
            path.write_bytes(data)
            with pytest.raises(pt.Error, match=r"is damaged|is no saved program"):
                pt.load_compiled(str(path))


def cannot(_: bytearray) -> None:
    raise ValueError("it has the calling convention version 99")


def test_a_file_of_another_form_or_of_another_jax_says_so(
    small: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(small)
    parts = dict(saved_file.read(path).parts)
    about = json.loads(parts["program.json"])
    saved_file.written(path, parts | {"program.json": json.dumps(about | {"format": 7}).encode()}, [])
    with pytest.raises(pt.Error, match="another form") as error:
        pt.load_compiled(str(path))
    assert "it has number 7, and this version reads number 1" in str(error.value)
    saved_file.written(path, parts, [])
    monkeypatch.setattr(export, "deserialize", cannot)
    with pytest.raises(pt.Error, match="was saved with JAX"):
        pt.load_compiled(str(path))


def test_other_files_are_no_saved_programs(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    for name, says in (("text", "is no saved program"), ("none", "no such file"), (".", "it is a folder")):
        with pytest.raises(pt.Error, match=says):
            pt.load_compiled(str(tmp_path / name))
    with pytest.raises(pt.Error, match="cannot be written: No such file or directory"):
        PLANS["rows"]()[0].lower().save(str(tmp_path / "no" / "f"))


def test_large_arrays_lie_beside_the_file_and_are_checked(tmp_path: Path) -> None:
    table = jnp.asarray(RNG.standard_normal((1 << 18, 4), np.float32))
    path, folder = tmp_path / "f", tmp_path / "f.arrays"
    graph = pt.plan(lambda x: (x @ table.T).sum(), MESH, X[:, :4]).tile("const/0", 0, "data").lower()
    for _ in range(2):
        graph.save(str(path))
    assert path.stat().st_size < 20_000
    (beside,) = folder.iterdir()
    loaded = pt.load_compiled(str(path))
    assert_equal(loaded(X[:, :4]), graph.run(X[:, :4]))
    # Each device has its part.
    assert {shard.data.shape for shard in loaded.consts[0].addressable_shards} == {(1 << 16, 4)}
    data = bytearray(beside.read_bytes())
    for at in (0, 9, 4000, len(data) - 1):
        beside.write_bytes(bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]))
        with pytest.raises(pt.Error, match="is damaged"):
            pt.load_compiled(str(path))
    beside.unlink()
    with pytest.raises(pt.Error, match="closes over an array that lies beside it") as error:
        pt.load_compiled(str(path))
    assert "copy the folder with the file" in str(error.value)


def test_a_program_that_is_saved_again_leaves_no_arrays_of_the_last_time(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    for seed in range(2):
        table = jnp.full((1 << 15,), float(seed))
        pt.plan(lambda x, table=table: x.sum() + table.sum(), MESH, X).lower().save(path)
    assert len([*(tmp_path / "f.arrays").iterdir()]) == 1
    assert float(pt.load_compiled(path)(np.zeros_like(X))) == 1 << 15


def test_the_file_is_a_zip_archive_without_pickles(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(small)
    with ZipFile(path) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["arrays", "graph.mlir", "kernels/0", "program.json"]
    files = [tmp_path / name for name in ("one", "other")]
    for file in files:
        PLANS["rows"]()[0].lower().save(str(file))
    assert files[0].read_bytes() == files[1].read_bytes()
