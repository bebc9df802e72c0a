"""The arguments whose buffers a call may use for its results, as people name them."""

from ...dialects.errors import Error
from .arguments import Function
from .checks import patterns_of
from .names import Patterns, as_patterns, match


def donated(function: Function, given: Patterns) -> tuple[str, ...]:
    """The names of the donated arguments. Raises Error for an unknown or static one."""
    if not as_patterns(given):
        return ()
    static = set(function.static)
    parameters = [name for name, each in function.signature.parameters.items() if each.kind is not each.VAR_POSITIONAL]
    globs = patterns_of(given)
    for glob in globs:
        if glob in static:
            raise Error(f"argument `{glob}` is static and cannot be donated", helps=["donate arguments that are arrays"])
        if glob not in parameters and glob in function.signature.parameters:
            raise Error(f"argument `*{glob}` cannot be donated: it has no name at the call", helps=["give it as one tuple"])
    if function.keyword:
        return globs
    return tuple(match(globs, [name for name in parameters if name not in static], what="argument"))
