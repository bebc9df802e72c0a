"""Saved programs, where things are unusual: leaves that are one object, odd keys and types, files made on purpose."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import partita as pt
from partita.compiler.graph.saved import file as saved_file
from partita.compiler.jax_private import jax, jnp

MESH = pt.Mesh(data=4, model=2)
X = np.arange(16.0, dtype=np.float32).reshape(8, 2)


class Moments(NamedTuple):
    nu: Any
    mu: Any


def loaded(f: Callable[..., Any], *args: Any, path: Path, how: str = "whole", **options: Any) -> Any:
    pt.plan(f, MESH, *args).lower(how).save(path, **options)
    return pt.load_compiled(path)


@pytest.mark.parametrize("how", ["whole", "collective"])
def test_leaves_that_are_one_object_go_where_their_names_say(how: str, tmp_path: Path) -> None:
    zeros, grad = np.zeros((8, 2), np.float32), np.full((8, 2), 2, np.float32)
    step = loaded(lambda s, g: Moments(s.nu + 10 * g * g, s.mu + g), Moments(zeros, zeros), grad, path=tmp_path / "f", how=how)
    state = {"nu": zeros, "mu": zeros}
    for _ in range(3):
        state = step(state, grad)
    assert (float(state["mu"][0, 0]), float(state["nu"][0, 0])) == (6, 120)
    shared = jax.device_put(zeros)
    for given in ({"nu": shared, "mu": shared}, {"nu": shared, "mu": shared}, {"nu": grad, "mu": shared}):
        assert float(step(given, grad)["nu"][0, 0]) == 40 + float(given["nu"][0, 0])


def test_two_leaves_of_one_name_are_refused(tmp_path: Path) -> None:
    tree = OrderedDict([("1", X), (1, X + 1)])
    with pytest.raises(pt.Error, match="has two leaves with the name `t/1`"):
        loaded(lambda t: t[1], tree, path=tmp_path / "f")


def test_keys_that_cannot_be_sorted_are_those_of_results(tmp_path: Path) -> None:
    found = loaded(lambda x: OrderedDict([("z", x), (1, x + 1)]), X, path=tmp_path / "f")(X)
    assert list(found) == ["z", 1]
    np.testing.assert_array_equal(found[1], X + 1)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "bfloat16", "int4", "bool", "complex64", "uint32"])
@pytest.mark.parametrize("size", [4, 1 << 17])
def test_constants_of_every_type_are_read_back(dtype: str, size: int, tmp_path: Path) -> None:
    const = jnp.ones(size).astype(dtype)
    found = loaded(lambda x: x.sum() + jnp.real(const).astype("float32").sum(), X, path=tmp_path / "f")(X)
    assert float(found) == X.sum() + size


def test_a_fourier_transform_is_saved(tmp_path: Path) -> None:
    found = loaded(lambda x: jnp.abs(jnp.fft.fft(x, axis=0)), X, path=tmp_path / "f")(X)
    np.testing.assert_allclose(found, np.abs(np.fft.fft(X, axis=0)), rtol=1e-4, atol=1e-4)


def test_saving_needs_no_devices_whatever_mesh_is_set(tmp_path: Path) -> None:
    two = jax.make_mesh((2,), ("z",), devices=jax.devices()[:2])
    with jax.set_mesh(two):
        call = loaded(lambda x: x + 1, X, path=tmp_path / "f")
        np.testing.assert_array_equal(call(X), X + 1)
    large = pt.plan(lambda x: x + 1, pt.Mesh(data=64), np.zeros(64, np.float32)).tile("x", 0, "data")
    large.lower().save(tmp_path / "large")
    with pytest.raises(pt.Error, match="needs 64 devices, but there are 8"):
        pt.load_compiled(tmp_path / "large")


def test_numbers_of_64_bits_ask_for_the_setting(tmp_path: Path) -> None:
    with jax.enable_x64(True):
        pt.plan(lambda x: x + 1, MESH, np.arange(8.0)).lower().save(tmp_path / "f")
        assert pt.load_compiled(tmp_path / "f")(np.arange(8.0)).dtype == np.float64
    with pytest.raises(pt.Error, match="saved with numbers of 64 bits: `x` is float64"):
        pt.load_compiled(tmp_path / "f")


# --- calls -------------------------------------------------------------------------------------------------------------------


@jax.tree_util.register_pytree_node_class
class Fails:
    """A node that cannot be made of results."""

    made = 0

    def __init__(self, x: Any) -> None:
        self.x = x

    def tree_flatten(self) -> Any:
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Any:
        cls.made += 1
        if type(children[0]).__name__ == "ArrayImpl":
            raise TypeError("a node of the user's")
        return cls(*children)


def test_an_error_of_the_users_tree_is_the_users(tmp_path: Path) -> None:
    calls = list[int]()

    def f(x: Any) -> Any:
        jax.debug.callback(lambda: calls.append(1))
        return Fails(x * 2)

    graph = pt.plan(f, MESH, X).lower().compile()
    for number in (1, 2, 3):
        with pytest.raises(TypeError, match="a node of the user's"):
            graph(jnp.asarray(X))
        jax.effects_barrier()
        assert len(calls) == number


def test_a_first_call_while_jax_traces_leaves_no_tracers_behind() -> None:
    const = jnp.arange(2.0)
    graph = pt.plan(lambda x: x + const[None], MESH, X).lower().compile()

    def outer(y: Any) -> Any:
        return y + graph(X)

    np.testing.assert_array_equal(jax.jit(outer)(jnp.zeros((8, 2))), X + np.arange(2.0))
    np.testing.assert_array_equal(graph(X), X + np.arange(2.0))


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "dtype": (lambda: X.astype(np.int32), "is i32"),
    "shape": (lambda: X[:4], "f32[4, 2]"),
    "shape of an array": (lambda: jnp.asarray(X[:4]), "f32[4, 2]"),
    "only a shape": (lambda: jax.ShapeDtypeStruct((8, 2), "float32"), "got a shape"),
    "text": (lambda: "x", "must be an array"),
    "tree": (lambda: {"a": X}, "called with"),
    "too large a number": (lambda: 2**40, "argument `x`"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("is_saved", [False, True])
def test_later_calls_have_the_errors_of_the_first(is_saved: bool, wrong: str, tmp_path: Path) -> None:
    plan = pt.plan(lambda x: x * 2, MESH, X).tile("x", 0, "data")
    plan.lower().save(tmp_path / "f")
    call = pt.load_compiled(tmp_path / "f") if is_saved else plan.lower().compile()
    value, says = WRONG[wrong]
    errors = list[str]()
    for _ in range(3):
        with pytest.raises(pt.Error) as error:
            call(value())
        errors.append(str(error.value))
        np.testing.assert_array_equal(call(X), X * 2)
        np.testing.assert_array_equal(call(X.astype(np.float64)), X * 2)
        np.testing.assert_array_equal(call(jnp.asarray(X)), X * 2)
    assert len({*errors}) == 1 and says in errors[0]


def test_programs_of_several_threads_are_loaded_and_called_at_once(tmp_path: Path) -> None:
    loaded(lambda x: x * 2, X, path=tmp_path / "f")
    found = list[Any]()

    def run() -> None:
        call = pt.load_compiled(tmp_path / "f")
        found.extend(np.asarray(call(X + at)) - 2 * at for at in range(20))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 60
    for each in found:
        np.testing.assert_allclose(each, X * 2, atol=1e-4)


# --- files -------------------------------------------------------------------------------------------------------------------


def changed(parts: dict[str, bytes], change: Callable[[Any], None]) -> dict[str, bytes]:
    about = json.loads(parts["program.json"])
    change(about)
    return parts | {"program.json": json.dumps(about).encode()}


ON_PURPOSE: dict[str, Callable[[dict[str, bytes]], dict[str, bytes]]] = {
    "no JSON": lambda parts: parts | {"program.json": b"{"},
    "a list": lambda parts: parts | {"program.json": b"[]"},
    "no text": lambda parts: parts | {"program.json": b"\xff"},
    "deep JSON": lambda parts: parts | {"program.json": b"[" * 100_000},
    "no graph": lambda parts: {name: each for name, each in parts.items() if name != "graph.mlir"},
    "no MLIR": lambda parts: parts | {"graph.mlir": b"junk"},
    "a graph that does not verify": lambda parts: (
        parts | {"graph.mlir": parts["graph.mlir"].replace(b"f32[8, 2]", b"f32[8, 3]", 1)}
    ),
    "no kernel": lambda parts: {name: each for name, each in parts.items() if name != "kernels/0"},
    "junk for a kernel": lambda parts: parts | {"kernels/0": b"junk" * 40},
    "no signature": lambda parts: changed(parts, lambda about: about["call"].pop("parameters")),
    "an unknown kind": lambda parts: changed(parts, lambda about: about["call"].update(parameters=[["x", "NONE"]])),
    "an unknown dtype": lambda parts: changed(parts, lambda about: about["call"]["arguments"][0].update(dtype="f99")),
    "another shape": lambda parts: changed(parts, lambda about: about["call"]["arguments"][0].update(shape=[4])),
    "an argument twice": lambda parts: changed(
        parts, lambda about: about["call"]["arguments"].append(about["call"]["arguments"][0])
    ),
    "no such result": lambda parts: changed(parts, lambda about: about["call"].update(tree=7)),
    "a negative result": lambda parts: changed(parts, lambda about: about["call"].update(tree=-1)),
    "an unknown donation": lambda parts: changed(parts, lambda about: about["call"].update(donated=["y"])),
    "junk for an array": lambda parts: parts | {"arrays/0": b"junk", "arrays": b"0 float32"},
}


@pytest.mark.parametrize("how", ON_PURPOSE)
def test_a_file_that_was_made_on_purpose_is_an_error(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    loaded(lambda x: x * 2, X, path=path)
    parts = ON_PURPOSE[how](dict(saved_file.read(path).parts))
    path.write_bytes(saved_file._archive(parts))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(pt.Error, match=r"is no saved program of this version|cannot read|another form"):
        pt.load_compiled(path)


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    graph = pt.plan(lambda x: x + 1, MESH, X).lower()
    for name, says in (("folder", "it is a folder"), ("no/f", "No such file or directory")):
        with pytest.raises(pt.Error, match=says):
            graph.save(tmp_path / name)
    with pytest.raises(pt.Error, match="it is no regular file"):
        graph.save("/dev/null")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
    (tmp_path / "link").symlink_to(tmp_path / "f")
    graph.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_array_equal(pt.load_compiled(tmp_path / "f")(X), X + 1)


def test_a_program_that_is_saved_while_it_is_loaded_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    path, graphs = tmp_path / "f", list[Any]()
    for seed in range(2):
        table = jnp.full((1 << 15,), float(seed))
        graphs.append(pt.plan(lambda x, table=table: x.sum() + table.sum(), MESH, X).lower())
    graphs[0].save(path)
    done = threading.Event()

    def save() -> None:
        while not done.is_set():
            for each in graphs:
                each.save(path)

    thread = threading.Thread(target=save)
    thread.start()
    try:
        for _ in range(10):
            assert saved_file.read(path).arrays[0][:1].tolist() in ([0.0], [1.0])
    finally:
        done.set()
        thread.join()
    assert len([*tmp_path.rglob("*")]) == 3
