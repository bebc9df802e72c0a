"""What definitions imply about ops, and so no list of ops says, is what the ops do."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from call import Call
from calls import CALLS, NO_CALL

import partita as pt
from partita.compiler.ops.index_operands import combiner
from partita.compiler.ops.params import Foreign, encode, op_name
from partita.dialects.definitions import printer
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.definitions.registry import definitions
from partita.dialects.definitions.syntax_tree import Definition, Param, Read
from partita.dialects.ground.errors import Error
from partita.dialects.params import NO_PARAMS, ParamsAttr
from partita.dialects.reference.evaluate import evaluate
from partita.dialects.regions import BORDERS

Array = Any
NAMES = [name for name in definitions if name not in NO_CALL and name not in BORDERS]
SCATTERS = [name for name in NAMES if "update_jaxpr" in definitions[name].dropped]


def traced(closed: Any, args: Sequence[Array]) -> Generator[tuple[Any, list[Array]], None, list[Array]]:
    """Each equation of a program with its operands; the results."""
    values: dict[Any, Array] = dict(zip([*closed.jaxpr.invars, *closed.jaxpr.constvars], [*args, *closed.consts], strict=True))
    for eqn in closed.jaxpr.eqns:
        inputs = [values[atom] if not hasattr(atom, "val") else jnp.asarray(atom.val, atom.aval.dtype) for atom in eqn.invars]
        if eqn.primitive.name == "jit":
            results = yield from traced(eqn.params["jaxpr"], inputs)
        else:
            yield eqn, inputs
            results = eqn.primitive.bind(*inputs, **eqn.params)
        values |= zip(eqn.outvars, results if isinstance(results, Sequence) else [results], strict=True)
    return [values[atom] if not hasattr(atom, "val") else jnp.asarray(atom.val) for atom in closed.jaxpr.outvars]


SIGNS = (np.asarray, lambda x: x if x.dtype.kind in "bu" else -x)


class Op:
    """One op of a program, on operands that may be changed.

    `read` are those whose elements its results consist of; `alike` have the dtype of the first result.
    """

    def __init__(self, eqn: Any, inputs: Sequence[Array]) -> None:
        self.name = op_name(eqn.primitive.name)
        self.inputs = [np.asarray(each) for each in inputs]
        self.outs = [(var.aval.dtype.name, var.aval.shape) for var in eqn.outvars]
        self.definition = definitions[self.name].with_arity(len(inputs), len(self.outs))
        self.params = encode(eqn.params, Foreign(), self.definition)
        self.read = read(self.definition)
        self.alike = [at for at, each in enumerate(self.inputs) if each.dtype.name == self.outs[0][0]]

    def on(self, changed: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        return evaluate(self.name, self.params, [changed.get(at, each) for at, each in enumerate(self.inputs)], self.outs)


def read(definition: Definition) -> set[int]:
    return {at for each in definition.moved if isinstance(each, Read) for at in definition.positions(each.array)}


def ops(name: str) -> Iterator[Op]:
    """The op in each call of it."""
    for call in CALLS:
        if call.op == name:
            for eqn, inputs in traced(jax.make_jaxpr(call.function)(*call.args), call.args):
                if op_name(eqn.primitive.name) == name:
                    yield Op(eqn, inputs)


def renamed(x: Array) -> Array:
    """Another element for each: small numbers, in no order, so that only an op that looks at none commutes with it."""
    if x.dtype == bool:
        return ~x
    if x.dtype.kind == "c":
        return (renamed(x.real) + 1j * renamed(x.imag)).astype(x.dtype)
    return ((50 * x.astype(np.float64) + 3) % 8 // 1).astype(x.dtype)


def commutes(op: Op, inputs: Mapping[int, np.ndarray]) -> bool:
    """Whether it is the same to rename elements of these operands, and of the results."""
    try:
        found = op.on({at: renamed(each) for at, each in inputs.items()})
    except (np.linalg.LinAlgError, IndexError):
        return False
    known = [renamed(each) for each in op.on(inputs)]
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(found, known, strict=True))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_an_op_moves_elements_if_and_only_if_it_commutes_with_renaming_them(name: str) -> None:
    if definitions[name].moves:
        assert all(commutes(op, {at: renamed(op.inputs[at]) for at in op.read}) for op in ops(name))
    else:
        assert any(not commutes(op, {at: sign(op.inputs[at]) for at in op.alike}) for op in ops(name) for sign in SIGNS)


@pytest.mark.parametrize("name", [name for name in NAMES if definitions[name].moves])
def test_an_op_that_moves_zeros_gives_zeros(name: str) -> None:
    for op in ops(name):
        if all(each.value(op.params) == 0 for each in op.definition.moved if isinstance(each, Param)):
            assert not any(each.any() for each in op.on({at: np.zeros_like(op.inputs[at]) for at in op.read}))


ZEROS = [
    lambda x, z: jnp.concatenate([z, z]),
    lambda x, z: z[::2].astype(jnp.int32),
    lambda x, z: jnp.pad(z, 1),
    lambda x, z: jnp.where(x > 0, z, 0.0),
    lambda x, z: jax.lax.dynamic_slice(z, (x[0].astype(jnp.int32),), (4,)),
]
OTHERS = [lambda x, z: jnp.concatenate([z, x]), lambda x, z: jnp.pad(z, 1, constant_values=1), lambda x, z: x]


def test_a_program_knows_what_is_zero() -> None:
    for wanted, functions in ((True, ZEROS), (False, OTHERS)):
        for function in functions:
            program = pt.plan(lambda x, f=function: f(x, jnp.zeros(8)), pt.Mesh(a=2), np.ones(8, np.float32)).source.program
            assert program.zero[program.returned[0]] is wanted


@pytest.mark.parametrize("name", SCATTERS)
def test_the_combiner_of_a_scatter_is_that_of_its_definition(name: str) -> None:
    numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
    params = encode({"dimension_numbers": numbers, "mode": jax.lax.GatherScatterMode.CLIP}, Foreign())
    for update in (-2, 5):
        acc, updates = np.array([3], np.float32), np.array([update], np.float32)
        (found,) = evaluate(name, params, [acc, np.zeros((1, 1), np.int32), updates], [("float32", (1,))])
        assert found == combiner(name)(jnp.asarray(acc), jnp.asarray(updates))


def test_starts_of_windows_are_found_in_the_guard() -> None:
    found = {name: list(each.starts) for name in definitions if (each := definitions[name].with_arity(4, 1)).starts}
    assert found == {
        "gather": [1],
        "dynamic_slice": [1, 2, 3],
        "dynamic_update_slice": [2, 3],
        **{name: [1] for name in SCATTERS},
    }


def test_only_a_barrier_returns_each_operand_unchanged() -> None:
    assert [name for name in definitions if definitions[name].apart] == ["optimization_barrier"]


def test_a_parameter_that_has_its_default_is_not_stored() -> None:
    line = "f(x)   out[i..] = @(x[i..])   default accuracy = none, weak = false, times = 2"
    definition = parse_definitions(line)["f"]
    assert printer.definition(definition) == line
    assert encode({"accuracy": None, "weak": False, "times": 2}, Foreign(), definition) == NO_PARAMS
    assert encode({"accuracy": None, "weak": True, "times": 3}, Foreign(), definition) == ParamsAttr.of(weak=True, times=3)
    with pytest.raises(Error, match="cannot be read"):
        parse_definitions("f(x)   out[i..] = x[i..]   default n = |i|")


@pytest.mark.parametrize("call", [call for call in CALLS if definitions[call.op].defaults], ids=str)
def test_what_jax_gives_by_default_is_a_default(call: Call) -> None:
    """No `none` is left among the parameters of a call that says none of them."""
    for op in ops(call.op):
        assert None not in [value for _, value in op.params.items()], op.params.text
