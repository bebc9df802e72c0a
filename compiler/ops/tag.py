"""`pt.tag`: a name for an intermediate value, written in the program itself.

Tagging computes nothing. It is a primitive so that the name survives tracing and differentiation: the value keeps the
name, its tangent is `tangent(name)`, and its cotangent, which is made by transposing, is `grad(name)`.

    h = pt.tag(jax.nn.relu(x @ w1), "hidden")    -->    hidden: f32[512, 1024], and in a gradient also grad(hidden)
"""

from collections.abc import Sequence
from numbers import Number
from typing import Any, TypeVar, cast

from jax import Array

from ...dialects.ground.errors import Error
from ..inputs.checks import refused
from ..inputs.names import escape_parts, path_parts
from ..jax_private import ad, batching, tree
from .identity_primitives import identity

T = TypeVar("T")

tag_p: Any = identity("tag")


def tag(x: T, name: str) -> T:
    """`x` itself, named `name` for tactics and reports; a tree's leaves are named `name/PATH`.

    A name given twice refers to both values. In a loop body it refers to the value of each trip. Raises Error for an empty
    name, or one that is not a string.
    """
    if isinstance(x, str) and not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Error("the arguments of `pt.tag` are swapped", helps=[f'write `pt.tag(x, "{x}")`: the value, then its name'])
    if not isinstance(name, str) or not name.strip("/"):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused("name", "a non-empty string", name, 'write `pt.tag(x, "name")`')
    try:
        leaves, structure = tree.tree_flatten_with_path(x)
        pairs = cast("list[tuple[object, object]]", leaves)
        if not all(isinstance(leaf, Number) or hasattr(type(leaf), "dtype") for _, leaf in pairs):
            raise TypeError
        tagged = [tag_p.bind(leaf, name="/".join([escape_parts(name), *path_parts(keys)])) for keys, leaf in leaves]
    except (TypeError, ValueError, OverflowError, RecursionError, SystemError):
        raise refused("x", "arrays", x, "tag a value that the function computes") from None
    return cast(T, tree.tree_unflatten(structure, tagged))


def cotangent_name(name: str) -> str:
    """The name of the cotangent of a value with this name: `grad(h)`, both for `h` and for its tangent `tangent(h)`."""
    return f"grad({name.removeprefix('tangent(').removesuffix(')')})" if name.startswith("tangent(") else f"grad({name})"


def _jvp(primals: Sequence[Array], tangents: Sequence[Array], *, name: str) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    named = t if type(t) is ad.Zero else tag_p.bind(t, name=f"tangent({name})")
    return tag_p.bind(x, name=name), named


def _transpose(ct: Array, x: Array, *, name: str) -> list[Array]:
    del x
    return [ct if type(ct) is ad.Zero else tag_p.bind(ct, name=cotangent_name(name))]


ad.primitive_jvps[tag_p] = _jvp
ad.primitive_transposes[tag_p] = _transpose
batching.defvectorized(tag_p)
