"""A host callback that raises is an error of the call, and the next call works. XLA would wait, and then end the process."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import users_environment
from jax.experimental import io_callback

import partita as pt
from partita.compiler.jax_private import jax, jnp

MESH = pt.Mesh(data=8)
X = np.ones((8, 16), np.float32)
TYPE = jax.ShapeDtypeStruct((8, 16), np.float32)


class Host:
    """A function of the host that raises while it is told to."""

    raises = True

    def __call__(self, x: Any) -> Any:
        if self.raises:
            raise ValueError("no such row")
        return np.asarray(x) + 1


def of_kind(kind: str, host: Host) -> Any:
    def program(x: Any) -> Any:
        if kind == "debug":
            jax.debug.callback(host, x.sum())
            return x.sum(0) + 1.0
        return {"pure": jax.pure_callback, "io": io_callback}[kind](host, TYPE, x).sum(0) / 8

    return program


@pytest.mark.parametrize("run", ["compile", "jit", "graph", "kernel"])
@pytest.mark.parametrize("kind", ["pure", "io", "debug"])
def test_what_a_callback_raises(kind: str, run: str) -> None:
    host, tactic = Host(), pt.Tile({"x": 0}, "data")
    program = of_kind(kind, host)
    if run in ("compile", "graph"):
        plan = pt.plan(program, MESH, X).apply(tactic)
        call: Any = plan.compile() if run == "compile" else plan.lower("collective").run
    elif run == "jit":
        call = pt.jit(program, mesh=MESH, tactics=[tactic])
    else:
        call = pt.program(pt.kernel(program, devices=MESH, tactics=[tactic]))
    with pytest.raises(pt.Error, match=r"a host callback of `.*` has raised ValueError: no such row") as error:
        call(X)
        # What prints returns nothing, so the call does not wait for it.
        jax.effects_barrier()
        call(X)
    assert isinstance(error.value.__cause__, ValueError)
    assert error.value.location is not None and "raise ValueError" in error.value.location.text
    host.raises = False
    jax.effects_barrier()
    pt.set_in_flight(None)
    try:
        call(X)
    except pt.Error:
        assert kind == "debug", "the second of two calls had failed too"
    np.testing.assert_array_equal(call(X), np.full(16, 9.0 if kind == "debug" else 2.0))


def test_a_callback_on_one_device_raises_as_in_jax() -> None:
    run = pt.plan(of_kind("pure", Host()), pt.Mesh(data=1), X).compile()
    with pytest.raises(Exception, match="no such row"):
        jnp.asarray(run(X)).block_until_ready()


def test_what_a_callback_raises_within_a_transformation_is_an_error_of_the_next_call() -> None:
    host = Host()
    run = pt.plan(of_kind("pure", host), MESH, X).apply(pt.Tile({"x": 0}, "data")).compile()
    assert np.isnan(jax.jit(run)(X)).all()
    with pytest.raises(pt.Error, match="a host callback of a program has raised ValueError: no such row"):
        run(X)
    host.raises = False
    np.testing.assert_array_equal(run(X), np.full(16, 2.0))


def test_a_callback_that_returns_another_shape() -> None:
    def other(_: Any) -> Any:
        return np.zeros(3, np.float32)

    def program(x: Any) -> Any:
        return x.mean() + jax.pure_callback(other, jax.ShapeDtypeStruct((), np.float32), x.sum())

    run = pt.plan(program, MESH, X).apply(pt.Tile({"x": 0}, "data")).compile()
    with pytest.raises(pt.Error, match=r"it returns arrays of the shapes \[\(3,\)\], and has said \[\(\)\]"):
        run(X)


def test_a_callback_in_a_kernel_on_a_set_of_its_own() -> None:
    host = Host()
    call: Any = pt.kernel(of_kind("pure", host), devices=pt.devices(4, "host"), tactics=[pt.Tile({"x": 0}, "device")])
    calls: list[Any] = [call, pt.program(call)]
    for run in calls:
        host.raises = True
        with pytest.raises(pt.Error, match="has raised ValueError: no such row"):
            run(X)
        host.raises = False
        np.testing.assert_array_equal(run(X), np.full(16, 2.0))


CALLS_WITHIN = """
import jax, jax.numpy as jnp, numpy as np, partita as pt
from jax.experimental import io_callback

jax.config.update("jax_num_cpu_devices", 8)
MESH, X, ROWS = pt.Mesh(data=8), np.ones((8, 16), np.float32), [pt.Tile({"x": 0}, "data")]
TYPE = jax.ShapeDtypeStruct(X.shape, X.dtype)

def inner(x):
    return x / x.sum()

def plan(fn, mesh=MESH):
    return pt.plan(fn, mesh, X).apply(*ROWS)

def both(fn, devices):
    made = pt.kernel(fn, devices=devices)
    return made, pt.program(lambda x: made(x))

WITHIN = {
    "compile": plan(inner).compile(),
    "jit": pt.jit(inner, mesh=MESH, tactics=ROWS),
    "graph": plan(inner).lower("collective").run,
    "in jax.jit": jax.jit(plan(inner).compile()),
    "gradient": jax.grad(lambda x: plan(inner).compile()(x)[0, 0]),
    **dict(zip(("kernel", "program"), both(inner, pt.devices(2)))),
    "program on one device": both(inner, pt.devices(1))[1],
}
ON_ONE = {"compile": plan(inner, pt.Mesh(data=1)).compile(), "jax.jit": jax.jit(inner)}
CALLED = []

def host(x):
    return np.asarray(CALLED[0](np.asarray(x)))

def pure(x):
    return jax.pure_callback(host, TYPE, x) + 1

def io(x):
    return io_callback(host, TYPE, x) + 1

def debug(x):
    jax.debug.callback(lambda x: host(x) is None, x)
    return x + 1

OUTER = {
    **{f"{fn.__name__} in compile": plan(fn).compile() for fn in (pure, io, debug)},
    "jit": pt.jit(pure, mesh=MESH, tactics=ROWS),
    "graph": plan(pure).lower("collective").run,
    **dict(zip(("kernel", "program"), both(pure, pt.devices(4)))),
}

def call(outer, within):
    CALLED[:] = [within]
    result = np.asarray(OUTER[outer](X))
    jax.effects_barrier()
    pt.compiler.run.controller.CONTROLLER.wait()
    return result

for outer in OUTER:
    for name, within in WITHIN.items() if outer == "pure in compile" else [*WITHIN.items()][:1]:
        try:
            call(outer, within)
        except pt.Error as error:
            assert "is called in a host callback of" in error.title and "whose devices wait" in error.title, error
            assert error.location.file.endswith("within.py"), error
            assert any("compute it with NumPy" in each for each in error.helps)
        else:
            raise AssertionError(f"{name} ran in {outer}")
        again = call(outer, np.sqrt)
        assert (again == 2).all(), again
for within in ON_ONE.values():
    call("pure in compile", within)
print("done")
"""


def test_a_program_called_in_a_callback_is_an_error_and_no_deadlock(tmp_path: Path) -> None:
    (tmp_path / "within.py").write_text(CALLS_WITHIN)
    done = subprocess.run(
        [sys.executable, "within.py"], cwd=tmp_path, env=users_environment(), capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
