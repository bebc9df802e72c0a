"""Virtual device sets, and the devices on which they are once a program runs.

A set says how many devices there are, and has a name. Which ones they are is decided when a program is compiled: each set has
devices of its own, in the order in which the program uses the sets, and a part of a set has some of those of the whole.

    left, right = pt.devices(2, "left"), pt.devices(4, "right")   -->   devices 0, 1 and 2, 3, 4, 5 of 8
    left, right = both[:2], both[2:]                              -->   the first two devices of `both`, and the others
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from types import MappingProxyType

from ...dialects.ground.amounts import counted, there_are
from ...dialects.ground.errors import Error, did_you_mean
from ...dialects.ground.validation import checked, integer, refused, shown
from ...dialects.mesh import Mesh
from ..jax_private import Device, jax
from .compiled import distinct, too_few

_NUMBERS = count()


@checked
def devices(count: int, name: str | None = None) -> Mesh:
    """A virtual set of so many devices, in a row: a mesh with the one axis `device`.

    Each call makes another set. `set[:2]` is the set of its first two devices, `pt.Mesh(stage=2, data=4).on("pipe")` one with
    axes, and `.at(stage=1)` the part of that at one coordinate. Raises Error for fewer than one device, and for a name that is
    not an identifier.

        pt.devices(2, "left")   -->   a set of two devices, for pt.kernel(fn, devices=...)
    """
    size = integer(count)
    if size is None or size < 1:
        raise refused("count", "a number of devices, 1 or more", count)
    if name is not None and not (name.isascii() and name.isidentifier()):
        raise refused("name", "a name like `left`", name)
    return Mesh(device=size).on(f"set{next(_NUMBERS)}" if name is None else name)


def bound(sets: Sequence[Mesh], given: Mapping[str, Sequence[Device]] | None = None) -> dict[str, list[Device]]:
    """The devices of each set, by name: those that are given for it, or for what it is a part of, or free ones.

    Raises Error if there are too few, or if a set is given another number of devices than it has.
    """
    roots = dict[str, Mesh]()
    for root in (root_of(each)[0].whole() for each in sets):
        if roots.setdefault(root.devices, root).size != root.size:
            title = f"the program uses two device sets of one name: {roots[root.devices]} and {root}"
            raise Error(title, helps=[f'give one of them another name: pt.{root.on("")!r}.on("right")'])
    found = _checked(given or {}, {**{each.devices: each for each in sets}, **roots})
    free = [each for each in jax.devices() if not any(each in those for those in found.values())]
    wanted = {root_of(each)[0].devices: root_of(each)[0] for each in sets if _placed(each, found) is None}
    if (total := sum(root.size for root in wanted.values())) > len(free):
        needs = ", ".join(f"`{root.devices or root}` {root.size}" for root in wanted.values())
        raise Error(
            f"the program's device sets need {total} devices, but {there_are(len(free))}",
            notes=[f"each set has devices of its own: {needs}"],
            helps=[
                f'on a host without accelerators: jax.config.update("jax_num_cpu_devices", {total}) before first use',
                "or let sets share devices: take parts of one set, both = pt.devices(4); both[:2]",
                'or say which they have: compile(devices={"NAME": jax.devices()[:2], ...})',
            ],
        )
    for root in wanted.values():
        found[root.devices], free = free[: root.size], free[root.size :]
    return {each.devices: _placed(each, found) or [] for each in sets}


def _checked(given: Mapping[str, Sequence[Device]], known: Mapping[str, Mesh]) -> dict[str, list[Device]]:
    """Checks the devices that are given for sets."""
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused("devices", "devices by the name of their set", given, 'write {"left": jax.devices()[:2]}')
    found = dict[str, list[Device]]()
    for name, those in given.items():
        if name not in known:
            name = str.__str__(name) if isinstance(name, str) else shown(name)  # pyright: ignore[reportUnnecessaryIsInstance]
            title = f"`devices` takes devices by the name of their set, and the program has no set `{name}`"
            have = ", ".join(filter(None, known)) or "one set, without a name"
            raise Error(title, helps=did_you_mean(name, known, f"it has {have}"))
        found[name] = distinct(those)
        if len(found[name]) != known[name].size:
            title = f"`{name}` has {counted(known[name].size, 'device')}, and is given {len(found[name])}"
            raise Error(title, helps=["give as many as the set has"])
    return found


def _placed(mesh: Mesh, found: Mapping[str, Sequence[Device]]) -> list[Device] | None:
    """The devices of a set, if they are found for it, or for what it is a part of."""
    root, numbers = root_of(mesh)
    if mesh.devices in found:
        return list(found[mesh.devices])
    return [found[root.devices][number] for number in numbers] if root.devices in found else None


def here(mesh: Mesh) -> list[Device]:
    """The devices of a set for a kernel that runs at once, in no program: always the same ones.

    The next set has the next ones, and then again the first. Raises Error if there are too few for the set alone.
    """
    if (those := _placed(mesh, _GIVEN.get())) is not None:
        return distinct(those)
    root, numbers = root_of(mesh)
    every = jax.devices()
    if root.size > len(every):
        raise too_few(root, len(every))
    taken = sum(len(those) for those in _HERE.values())
    key = root.devices, root.size
    if key not in _HERE:
        _HERE[key] = [every[(taken + at) % len(every)] for at in range(root.size)]
    return [_HERE[key][number] for number in numbers]


@contextmanager
def given(devices: Mapping[str, Sequence[Device]] | None) -> Generator[None]:
    """A context in which these sets, by name, have these devices."""
    before = _GIVEN.set(devices or {})
    try:
        yield
    finally:
        _GIVEN.reset(before)


_GIVEN: ContextVar[Mapping[str, Sequence[Device]]] = ContextVar("given", default=MappingProxyType({}))
_HERE = dict[tuple[str, int], list[Device]]()
"""The devices of sets that are not parts of others, by name and size."""


def root_of(mesh: Mesh) -> tuple[Mesh, Sequence[int]]:
    """The set of which a set is a part, and the numbers of its devices there."""
    numbers: Sequence[int] = range(mesh.size)
    while mesh.part is not None:
        mesh, own = mesh.part
        numbers = [own[number] for number in numbers]
    return mesh, numbers
