"""Arguments that are given by number, as `jax.jit` takes them, by their names.

step(params, batch, mode), static_argnums=2   -->   ("mode",)
"""

from collections.abc import Callable, Iterable
from typing import cast

from ...dialects.errors import Error
from .arguments import Function
from .checks import shown


def names_at(fn: Callable[..., object], numbers: object, option: str) -> tuple[str, ...]:
    """The names of the positional arguments with these numbers, negative ones from the end. Raises Error for others."""
    several = isinstance(numbers, Iterable) and not isinstance(numbers, str)
    given = cast("Iterable[object]", numbers if several else (numbers,))
    function = Function.of(fn)
    parameters = function.signature.parameters.values()
    positional = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    found: list[str] = []
    for number in given:
        if not isinstance(number, int) or isinstance(number, bool) or not -len(positional) <= number < len(positional):
            names = ", ".join(f"{at} `{name}`" for at, name in enumerate(positional)) or "no positional arguments"
            title = f"`{option}` takes numbers of positional arguments of `{function.name}`, got {shown(number)}"
            by_name = option.replace("argnums", "argnames")
            raise Error(title, location=function.location(), helps=[f"they are {names}", f"or name them: {by_name}=..."])
        found.append(positional[number])
    return tuple(found)
