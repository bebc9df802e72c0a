"""What a program of kernels refuses, and where the error points."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.compiler.graph.graph import Graph
from partita.compiler.jax_private import jax, jnp

X = np.ones((8, 16), np.float32)
LEFT, RIGHT = pt.devices(2, "left"), pt.devices(2, "right")


def double(x: Any) -> Any:
    return x * 2.0


A, B = pt.kernel(double, devices=LEFT), pt.kernel(double, devices=RIGHT)


def refused(function: Any, *says: str) -> pt.Error:
    with pytest.raises(pt.Error) as error:
        program: Any = pt.program(function)
        program(X)
    for each in says:
        assert each in str(error.value)
    return error.value


def test_code_with_operands_on_two_sets() -> None:
    def f(x: Any) -> Any:
        return A(x) + B(x)

    error = refused(f, "`add` has operands on several device sets: `device@left=2` and `device@right=2`")
    assert error.location is not None and error.location.text.strip() == "return A(x) + B(x)"


@pytest.mark.parametrize("loop", ["while", "cond"])
def test_kernels_in_loops_and_choices_of_jax(loop: str) -> None:
    def f(x: Any) -> Any:
        if loop == "while":
            return jax.lax.while_loop(lambda c: c.sum() < 9, A, x)
        return jax.lax.cond(x.sum() < 9, A, B, x)

    refused(f, f"`{loop}` calls kernels", "or use a `scan`, whose trips are written out")


def test_python_choices_on_values() -> None:
    def f(x: Any) -> Any:
        return A(x) if x.sum() > 0 else B(x)

    with pytest.raises(jax.errors.TracerBoolConversionError):
        pt.program(f)(X)


def test_a_program_without_kernels() -> None:
    refused(double, "`double` calls no kernels", "pt.jit")


def test_a_program_in_jit() -> None:
    program = pt.program(lambda x: B(A(x)))
    with pytest.raises(pt.Error, match="is a program of kernels, and cannot be a part of a compiled function"):
        jax.jit(program)(X)


def test_two_sets_of_one_name() -> None:
    other = pt.kernel(double, devices=pt.Mesh(data=4).on("left"))

    def f(x: Any) -> Any:
        return other(A(x))

    refused(f, "uses two device sets of one name: device@left=2 and data@left=4", '.on("right")')


def test_too_few_devices_say_what_there_is() -> None:
    large = [pt.kernel(double, devices=pt.devices(size, name)) for size, name in ((6, "six"), (4, "four"))]

    def f(x: Any) -> Any:
        return large[1](large[0](x))

    refused(f, "the program's device sets need 10 devices, but there are 8", "`six` 6, `four` 4", "take parts of one set")
    assert pt.program(f).graph(X).sets.keys() == {"six", "four"}
    with pytest.raises(pt.Error, match="needs 9 devices, but there are 8"):
        pt.kernel(double, devices=pt.devices(9))(X)


def test_the_devices_of_a_program_may_be_given() -> None:
    devices = jax.devices()
    f = pt.program(lambda x: B(A(x)), devices={"left": devices[6:], "right": devices[5:7]})
    assert f(X).sharding.device_set == {*devices[5:7]}
    with pytest.raises(pt.Error, match="`left` has 2 devices, and is given 3"):
        pt.program(lambda x: A(x), devices={"left": devices[:3]})(X)
    with pytest.raises(pt.Error, match="the program has no set `lft`") as error:
        pt.program(lambda x: A(x), devices={"lft": devices[:2]})(X)
    assert "did you mean `left`?" in str(error.value)
    with pytest.raises(pt.Error, match="the graph is on several device sets"):
        pt.program(lambda x: B(A(x))).graph(X).compile(devices[:2])


def test_a_plan_has_its_own_mesh_and_tactics() -> None:
    plan = pt.plan(double, LEFT, X)
    make: Any = pt.kernel
    with pytest.raises(pt.Error, match="a plan has a mesh and tactics of its own"):
        make(plan, devices=RIGHT)
    with pytest.raises(pt.Error, match="`devices` takes a device set, got None"):
        make(double)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pt.devices(0), "`count` takes a number of devices, 1 or more, got 0"),
        (lambda: pt.devices(2, "a b"), "`name` takes a name like `left`, got 'a b'"),
        (lambda: LEFT[2:], r"a set of 2 devices has none at \[2:None:1\]"),
        (lambda: LEFT[::-1], r"a set of 2 devices has none at \[None:None:-1\]"),
        (lambda: pt.Mesh(a=2, b=2)[:1], "has 2 axes, and is not a row of devices"),
        (lambda: pt.Mesh(a=2, b=2).at(a=2), "axis `a` has no coordinate 2"),
        (lambda: pt.Mesh(a=2, b=2).at(c=0), "the mesh has no axis `c`"),
        (lambda: pt.Mesh(a=4, b=2).refine(a=(2, 2)).at(a=0), "is taken along whole axes"),
    ],
)
def test_wrong_sets(make: Any, says: str) -> None:
    with pytest.raises(pt.Error, match=says):
        make()


def test_an_argument_of_another_shape_is_another_graph() -> None:
    f = pt.program(lambda x: B(A(x)))
    for shape in ((8, 16), (4, 2), (8, 16)):
        np.testing.assert_array_equal(f(jnp.ones(shape)), np.full(shape, 4))
    assert len(f.graphs) == 2


def test_what_fails_in_a_kernel_leaves_the_program_usable() -> None:
    @pt.kernel(devices=RIGHT)
    def log(x: Any) -> Any:
        return jnp.log(x - 3.0)

    f, x = pt.program(lambda x: log(A(x))), jnp.full((8, 16), 2.0)
    with jax.debug_nans(True), pytest.raises(pt.Error, match="`log` in `program` has made a NaN"):
        f(x - 1)
    np.testing.assert_array_equal(f(x), np.zeros((8, 16)))
    gone = x + 1
    gone.delete()
    with pytest.raises(pt.Error, match="argument `x` was donated to another call, or deleted"):
        f(gone)
    np.testing.assert_array_equal(f(x), np.zeros((8, 16)))


def test_a_kernel_within_a_kernel() -> None:
    outer = pt.kernel(lambda x: A(x) + 1.0, devices=RIGHT)
    for run in (outer, pt.program(outer)):
        with pytest.raises(pt.Error, match="the kernel `double` is called within the kernel `<lambda>`"):
            run(X)


def test_two_sets_of_one_name_that_are_parts() -> None:
    one, other = pt.kernel(double, devices=pt.devices(8, "row")[4:6]), pt.kernel(double, devices=pt.devices(4, "row")[:2])
    with pytest.raises(pt.Error, match="the program uses two device sets of one name"):
        pt.program(lambda x: other(one(x)))(X)


def test_a_text_with_an_unknown_set() -> None:
    text = pt.program(lambda x: B(A(x))).graph(X).text()
    with pytest.raises(pt.Error, match=r"f32\[8, 16\] on nowhere is on a device set on which no kernel runs"):
        Graph.parse(text.replace("on right", "on nowhere"))
