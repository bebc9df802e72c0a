"""How each JAX primitive is handled: by a definition, its own or one per call; by expansion; or unpartitioned.

The table is complete if it has every primitive that JAX can lower or evaluate; a test checks that, and `docs/coverage.md`
shows the table. It has the primitives of each version of JAX that Partita runs on, so it is the same page on all of them.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownVariableType=false

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from importlib.util import find_spec

from jax.extend.core import Primitive

from partita.compiler.define.self_defining import DERIVED
from partita.compiler.jax_private import (
    FIRST_WITH,
    FIRST_WITHOUT,
    OLDEST,
    Version,
    fancy_primitive_batchers,
    lowerings,
    platform_lowerings,
)
from partita.compiler.ops.jax_expansions import python_rule
from partita.compiler.ops.params import op_name
from partita.compiler.ops.tag import tag_p
from partita.compiler.trace.expansions import EXPANDED
from partita.compiler.trace.importer import INLINED
from partita.compiler.trace.why_whole import REASONS
from partita.dialects.definitions.registry import definitions
from partita.dialects.lax import OPS
from partita.dialects.regions import BORDERS


class Fate(Enum):
    """The columns of the table."""

    DEFINED = "defined"
    DERIVED = "defined by each call"
    EXPANDED = "expanded into other primitives"
    REGION = "a region, whose body is partitioned"
    INLINED = "inlined"
    WHOLE = "runs unpartitioned"


@dataclass(frozen=True, slots=True)
class Row:
    """One primitive; `why` is the reason if it runs unpartitioned."""

    primitive: str
    fate: Fate
    why: str = ""

    @property
    def versions(self) -> str:
        """The versions of JAX that have it."""
        return versions(FIRST_WITH.get(self.primitive, OLDEST), FIRST_WITHOUT.get(self.primitive))


def versions(first: Version, without: Version | None) -> str:
    """The versions from `first` until the last one before `without`."""
    last = without and (without[0], without[1] - 1)
    return " ".join([spelled(first), *(() if last is None else ("only",) if last == first else ("to", spelled(last)))])


def spelled(version: Version) -> str:
    return ".".join(map(str, version))


# JAX modules with primitives that nothing else imports; some are only in some versions.
_REST = (
    "jax.experimental.buffer_callback",
    "jax.experimental.compute_on",
    "jax.experimental.custom_partitioning",
    "jax.experimental.fused",
    "jax.experimental.key_reuse._core",
    "jax.experimental.multihost_utils",
    "jax.experimental.overlap",
    "jax.experimental.pallas",
    "jax.experimental.pallas.fuser",
    "jax.experimental.pallas.mosaic_gpu",
    "jax.experimental.pallas.tpu",
    "jax.experimental.pallas.triton",
    "jax.experimental.rnn",
    "jax.experimental.scheduling_groups",
    "jax.experimental.shard_alike",
    "jax.experimental.sparse",
    "jax.experimental.thunky",
    "jax.experimental.xla_metadata",
    "jax.nn",
    "jax.random",
    "jax.scipy.linalg",
    "jax.scipy.special",
)


def primitives() -> dict[str, Primitive]:
    """Every JAX primitive that JAX can lower or evaluate, or that is public, by name."""
    for name in (*filter(find_spec, _REST), "jax.extend.core.primitives"):
        import_module(name)
    tables: Iterable[Iterable[Primitive]] = [lowerings, *platform_lowerings.values()]
    lowered = set[Primitive]().union(*tables)
    # The tables of lowerings also have the primitives of other packages, including the user's.
    found = {each.name: each for each, public in _held() if public or each in lowered or python_rule(each)}
    return {name: found[name] for name in sorted(found) if found[name] is not tag_p}


def _held() -> Iterator[tuple[Primitive, bool]]:
    """The primitives in JAX's modules, and whether the module is the public one."""
    for name, module in [each for each in sys.modules.items() if each[0].split(".")[0] == "jax"]:
        for value in list(vars(module).values()):
            if isinstance(value, Primitive):
                yield value, name == "jax.extend.core.primitives"


def row(primitive: str, known: Mapping[str, Primitive]) -> Row | None:
    """How the primitive of this name is handled; None if it is not in the table. `known` are those of this JAX."""
    name = op_name(primitive)
    if name in DERIVED:
        return Row(primitive, Fate.DERIVED)
    if name in definitions and name not in OPS_OF_OUR_OWN:
        return Row(primitive, Fate.DEFINED)
    if name in OPS and name not in definitions:
        return Row(primitive, Fate.REGION)
    if primitive in INLINED:
        return Row(primitive, Fate.INLINED)
    if primitive in EXPANDED:
        return Row(primitive, Fate.EXPANDED)
    if primitive in REASONS:
        return Row(primitive, Fate.WHOLE, REASONS[primitive])
    # What another version of JAX has is in no other column if JAX writes it with other primitives there.
    return None if primitive in known and python_rule(known[primitive]) is None else Row(primitive, Fate.EXPANDED)


def rows() -> list[Row]:
    """The table, by primitive. `unspoken` lists the primitives that it lacks."""
    known = primitives()
    found = (row(name, known) for name in sorted({*known, *FIRST_WITH, *FIRST_WITHOUT}))
    return [each for each in found if each is not None]


def unspoken() -> list[str]:
    """The JAX primitives that are in no column."""
    known = primitives()
    return [name for name in known if row(name, known) is None]


def maps(primitive: Primitive) -> bool:
    """Whether `jax.vmap` has a rule that gives its operands a batch dim."""
    return primitive in fancy_primitive_batchers


OPS_OF_OUR_OWN = BORDERS | {"constant", "whole", "tag", "constrain", "grouped_dot", "grouped_outer", "stored", "update_slice"}
"""Definitions that are not JAX primitives."""
