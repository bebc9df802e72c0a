"""Checks the types of named ops, for `LaxOp.verify`. Each message is one sentence with its numbers."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from xdsl.utils.exceptions import VerifyException

from .definitions.registry import definitions
from .definitions.syntax_tree import Formal
from .definitions.tilings import Instance, SubIndices, bind
from .ground.errors import Error
from .params import Literal, ParamsAttr, Record
from .types import ArrayType

Types = tuple[ArrayType, ...]


# A program repeats a few dozen signatures thousands of times.
@lru_cache(maxsize=1 << 14)
def disagreement(kind: str, params: ParamsAttr, ins: Types, outs: Types) -> str:
    """How types disagree with the definition of `lax.KIND`; empty if they agree.

    Binds the definition and compares the extent of each index with every dim that it runs along.
    """
    definition = definitions[kind]
    for side, arrays, formals in (("operand", ins, definition.operands), ("result", outs, definition.results)):
        if problem := _miscounted(side, arrays, formals):
            return f"`lax.{kind}` {problem}"
    try:
        values = ([(array.dtype, array.shape) for array in arrays] for arrays in (ins, outs))
        instance = bind(definition, params, *values)
    except Error as error:
        # The error begins with the primitive's name.
        return error.title.replace(f"`{kind}`", f"`lax.{kind}`", 1)
    except (AssertionError, IndexError, KeyError, TypeError, ValueError) as error:
        # The readers of definitions trust parameters that tracing wrote; the text of a program may contain others.
        lacks = f" lacks {error}: it" if isinstance(error, KeyError) and error.args[0] not in params else ""
        return f"`lax.{kind}`{lacks} cannot take {params.text} on {[array.text for array in ins]}"
    if definition.ravel and (before := prod(ins[0].shape)) != (after := prod(outs[0].shape)):
        return f"`lax.{kind}` keeps all elements, and {ins[0].text} has {before} where {outs[0].text} has {after}"
    problem = _misfit("operand", ins, instance.operands, instance)
    problem = problem or _misfit("result", outs, instance.results, instance)
    return problem and f"`lax.{kind}`: {problem}"


def _miscounted(side: str, arrays: Types, formals: Sequence[Formal]) -> str:
    variadic = sum(formal.variadic for formal in formals)
    wanted = len(formals) - variadic
    if len(arrays) == wanted or (variadic and len(arrays) > wanted and (len(arrays) - wanted) % variadic == 0):
        return ""
    return f"has {len(arrays)} {side}s where its definition has {'at least ' if variadic else ''}{wanted}"


def _misfit(side: str, arrays: Types, tables: Sequence[SubIndices], instance: Instance) -> str:
    if [len(array.shape) for array in arrays] != [len(dims) for dims in tables]:
        return f"the {side}s {[array.text for array in arrays]} have other ranks than its definition"
    for position, (array, dims) in enumerate(zip(arrays, tables, strict=True)):
        for dim, (size, digits) in enumerate(zip(array.shape, dims, strict=True)):
            major = next((digit for digit in digits if digit.reach is None), None)
            walked = size if major is None else major.minor * instance.indices[major.at].extent
            if walked != size:
                return f"dim {dim} of {side} {position}, {array.text}, is {size}, and its index runs to {walked}"
    return ""


def check_constant(params: ParamsAttr, ins: Types, outs: Types) -> None:
    if ins or len(outs) != 1 or outs[0].shape or len(params) != 1 or "value" not in params:
        raise VerifyException("`lax.constant` has a `value`, no operands and one result of rank 0")
    if not _fits(params["value"], outs[0].dtype):
        raise VerifyException(f"`lax.constant`: {params.text} is not of dtype {outs[0].text.removesuffix('[]')}")


def _fits(value: Literal, dtype: str) -> bool:
    match value:
        case bool():
            return dtype == "bool"
        case int() if dtype.startswith("int"):
            bits = int(dtype[3:])
            return -(1 << bits - 1) <= value < 1 << bits - 1
        case int() if dtype.startswith("uint"):
            return 0 <= value < 1 << int(dtype[4:])
        case int() | float():
            return not dtype.startswith(("int", "uint", "bool"))
        case Record("complex", (("real", float()), ("imag", float()))):
            return dtype.startswith("complex")
        case _:
            return False
