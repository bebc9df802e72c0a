"""The coverage table of the documentation: how each primitive is handled, and the tilings that the example calls show."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from typing import cast

from calls import CALLS
from primitive_fates import OPS_OF_OUR_OWN, Fate, Row, rows, spelled
from tiling_names import Tilings, tilings

import partita as pt
from partita.compiler.jax_private import OLDEST
from partita.compiler.ops.params import op_name
from partita.dialects.definitions.registry import definitions
from partita.dialects.op_text import array_types
from partita.dialects.params import ParamsAttr
from partita.dialects.types import ArrayType

HEAD = f"""# Every primitive

What Partita does with each primitive that JAX can lower or evaluate. `make update` writes this page; a test fails if a
primitive is missing.

The column *from JAX* says which versions of JAX have a primitive: `0.11` means 0.11 and later. Partita runs on JAX
{spelled(OLDEST)} and later.

The column *places* lists the indices that can be tiled, over all example calls of each definition. Tiling an index partitions
the dims that it names. `k: +` leaves a pending sum (likewise `max`, `min`). *Looked up*: each device masks the rows that it
lacks. *Scanned*: each block takes the carry of the blocks before it. *Merge*: blocks are sorted, and then merged. An
index that reads a dim through a window, as in `x[p * 2 + q]`, gets the window of the dim that its block reads. All other dims
(`j:`) are unpartitioned.

"""

CALLS_SAY = """Each call of these primitives computes something else. The call itself says how it can be partitioned: by a grid
and BlockSpecs, or by a sharding rule. If it does not, a Pallas call runs unpartitioned, with the reason in `plan.whole`, and
the body of a `custom_partitioning` function is inlined.

"""


@cache
def derived() -> dict[str, Tilings]:
    """The tilings of each definition, over all of its calls."""
    found: defaultdict[str, Tilings] = defaultdict(Tilings)
    for call in CALLS:
        for node in pt.plan(call.function, pt.Mesh(a=2), *call.args).source.program.nodes:
            if node.op_name == call.op and node.op_name not in OPS_OF_OUR_OWN:
                ins, outs = (values_of(array_types(each)) for each in (node.op.operands, node.op.results))
                found[call.op] |= tilings(definitions[call.op], cast(ParamsAttr, node.op.properties["params"]), ins, outs)
    return found


def values_of(arrays: Sequence[ArrayType]) -> list[tuple[str, tuple[int, ...]]]:
    return [(array.dtype, array.shape) for array in arrays]


def meaning(name: str) -> str:
    """The definition's equation, without the clauses about parameters that it implies."""
    text = " ".join(definitions[name].text.split())
    return re.split(r" (?:extents|default|drop) ", text[text.index(")") + 1 :].strip())[0].replace("|", r"\|")


def page() -> str:
    fates: defaultdict[Fate, list[Row]] = defaultdict(list)
    for row in rows():
        fates[row.fate].append(row)
    counts = "".join(f"| {fate.value} | {len(fates[fate])} |\n" for fate in Fate)
    lines: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in fates[Fate.DEFINED]:
        name = op_name(row.primitive)
        lines[meaning(name), str(derived()[name]), row.versions].append(row.primitive)
    table = "".join(
        f"| {', '.join(names)} | `{text}` | {places} | {since} |\n" for (text, places, since), names in lines.items()
    )
    why: defaultdict[str, list[Row]] = defaultdict(list)
    for row in fates[Fate.WHOLE]:
        why[row.why].append(row)
    return (
        f"{HEAD}| | primitives |\n|---|---|\n{counts}| **all** | {sum(map(len, fates.values()))} |\n"
        f"\n## Defined\n\n| primitives | meaning | places | from JAX |\n|---|---|---|---|\n{table}"
        f"\n## Defined by each call\n\n{CALLS_SAY}{listed(fates[Fate.DERIVED])}"
        f"\n## Expanded into other primitives\n\n{listed(fates[Fate.EXPANDED])}"
        f"\n## A region, whose body is partitioned\n\n{listed(fates[Fate.REGION])}"
        f"\n## Inlined\n\n{listed(fates[Fate.INLINED])}"
        "\n## Unpartitioned\n\nThese run on gathered operands. `plan.whole` lists each one, unless it reads nothing and "
        "makes a scalar.\n"
        f"\n| why | primitives | from JAX |\n|---|---|---|\n"
        + "".join(f"| {reason} {line}" for reason, alike in why.items() for line in by_versions(alike))
    )


def listed(rows: Iterable[Row]) -> str:
    return f"| primitives | from JAX |\n|---|---|\n{''.join(by_versions(rows))}"


def by_versions(rows: Iterable[Row]) -> list[str]:
    """A line for the primitives of the same versions of JAX."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row.versions].append(row.primitive)
    return [f"| {', '.join(names)} | {versions} |\n" for versions, names in found.items()]
