"""Turns checked functions into Python functions on JAX arrays, compiled from an `ast` with the lines of the text.

    h[b, j] = max(sum(k) x[b, k] * w1[k, j], 0)   -->   with jax.named_scope("h"):
                                                             h = jnp.maximum(jnp.einsum("ab,bc->ac", x, w1), 0)

Tracing, differentiation, partitioning and messages about lines then work as for any JAX function.
"""

import ast
import linecache
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from ...dialects.definitions.syntax_tree import Apply, Group, Number
from ..jax_private import jax, jnp, lax
from . import runtime
from .check import CheckedFile
from .codegen_terms import Values
from .diagnostics import Text
from .python_code import ArrayCode, Code, squeezed, transposed
from .terms import Array, Calling, CheckedEquation, CheckedFunction, CheckedIndex, Term, free, span_in_text

_MODULES = {"_jax": jax, "_jnp": jnp, "_lax": lax, "_notation": runtime}


# Any: a program's functions return an array or a tuple of arrays, as its text says.
def elaborate(program: CheckedFile) -> Mapping[str, Callable[..., Any]]:
    """Compiles the functions of a program; returns them by name."""
    text = program.text
    # Lets Python show the lines of a text that is not in a file.
    if not linecache.getlines(text.file):
        linecache.cache[text.file] = (len(text.source), None, [line + "\n" for line in text.source.split("\n")], text.file)
    # Functions are called through their own namespace, because a value may have the name of a function.
    functions = SimpleNamespace()
    names: dict[str, Any] = {**_MODULES, "_functions": functions}
    module = ast.Module([definition(text, function) for function in program.functions.values()], [])
    exec(compile(module, text.file, "exec"), names)
    vars(functions).update((name, names[name]) for name in program.functions)
    return dict(vars(functions))


def definition(text: Text, function: CheckedFunction) -> ast.stmt:
    code, body = Code(function.span), list[ast.stmt]()
    for each in function.arguments:
        at = Code(each.span)
        taken = at.call("notation.take", function.name, each.name, each.dtype, each.shape, at.name(each.name))
        body.append(at.assign([each.name], taken))
    for statement in function.statements:
        try:
            body.append(equation(statement) if isinstance(statement, CheckedEquation) else calling(statement))
        except RecursionError:
            raise text.wrong("too_deep", statement.span) from None
    results = tuple(code.name(name) for name in function.returned)
    result = results[0] if len(results) == 1 else code.value(results)
    return code.function(function.name, [each.name for each in function.arguments], body, result)


def calling(statement: Calling) -> ast.stmt:
    """The code of a call: of a function of the file, inlined, or of a JAX primitive."""
    code, names = Code(statement.span), [left.array.name for left in statement.lefts]
    arguments = [_argument(each) for each in statement.arguments]
    if statement.params is None:
        value = code.call(f"functions.{statement.function}", *arguments)
    else:
        shapes = tuple(left.array.shape for left in statement.lefts)
        value = code.call("notation.opaque", statement.function, statement.params, shapes, *arguments)
        if len(names) == 1:
            value = code.index(value, 0)
    return code.scope("_".join(names), [code.assign(names, value)])


def _argument(argument: Array | Apply[Term]) -> ast.expr:
    if isinstance(argument, Array):
        return Code(argument.span).name(argument.name)
    (number,) = argument.args
    assert isinstance(number, Number)
    return Code(span_in_text(argument)).call("notation.literal", number.value, argument.dtype)


def equation(statement: CheckedEquation) -> ast.stmt:
    code, left = Code(statement.span), statement.left
    dims, before = left.dims or (), list[ast.stmt]()
    pieces = tuple(piece(code, statement, dims, term, before) for term in statement.pieces)
    value = pieces[0] if statement.along is None else code.call("jnp.concatenate", pieces, statement.along)
    if any(len(dim.indices) > 1 for dim in dims):
        value = code.call("jnp.reshape", value, left.array.shape)
    return code.scope(left.array.name, [*before, code.assign([left.array.name], value)])


def piece(
    code: Code, statement: CheckedEquation, dims: tuple[Group[CheckedIndex], ...], term: Term, before: list[ast.stmt]
) -> ast.expr:
    """The code of one piece of the right side, with a dim for each index on the left."""
    order: list[CheckedIndex] = []
    for number, dim in enumerate(dims):
        if number == statement.along:
            # Each piece has its own index of this name.
            order.append(next(index for index in free(term) if index.name == dim.indices[0].name))
        else:
            order += dim.indices
    return spread(code, Values(order, before).term(term), order, statement.left.array.dtype).code


def spread(code: Code, value: ArrayCode, order: list[CheckedIndex], dtype: str) -> ArrayCode:
    """The value with a dim for each index of the left side; missing dims are broadcast."""
    shape = tuple(index.extent for index in order)
    if value.number:
        return ArrayCode(code.call("jnp.full", shape, value.code, dtype=dtype), tuple(order))
    if value.indices == tuple(order) and len(value.dims) == len(order):
        return value
    wanted = tuple(index if index in value.dims else None for index in order)
    if value.dims == wanted and all(index.extent == 1 for index in order if index not in value.dims):
        return ArrayCode(value.code, tuple(order))
    value = squeezed(code, value)
    value = transposed(code, value, [index for index in order if index in value.dims])
    if len(value.dims) == len(order):
        return value
    places = tuple(dim for dim, index in enumerate(order) if index in value.dims)
    return ArrayCode(code.call("lax.broadcast_in_dim", value.code, shape, places), tuple(order))
