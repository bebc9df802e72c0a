"""The results that take the buffers of donated arguments."""

from collections import Counter

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ...rewrites.decide.placements import Placements, boundary
from ..inputs.arguments import donated
from ..inputs.names import Patterns
from ..trace.trace import Traced


def donated_bytes(traced: Traced, placements: Placements, donate: Patterns = (), on: Mesh | None = None) -> int:
    """The bytes of the results that take the buffer of a donated argument of the same type and layout, on one device.

    Of several device sets, those on one of them. Raises Error for a donated argument that does not exist or is static.
    """
    program, function = placements.program, traced.function
    names = {*donated(function, donate), *function.donated}
    free: Counter[tuple[str, Layout]] = Counter()
    sets = placements.table.sets
    for name, value in zip(program.argument_names, program.arguments, strict=True) if names else ():
        if name.split("/")[0] in names and (sets is None or sets.of(value) is on):
            free[program.types[value].dtype, boundary(placements, value)] += 1
    taken = 0
    for value in program.returned if free else ():
        key = program.types[value].dtype, boundary(placements, value)
        if free[key] and (sets is None or sets.of(value) is on):
            free[key] -= 1
            taken += placements.local_bytes(value, key[1])
    return taken
