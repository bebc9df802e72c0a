"""The mesh: the named axes along which devices are laid out."""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import Never, cast, overload

from .chips import CHIPS, DEFAULT, Chip, chip_of, said, with_memory
from .ground.errors import Error, did_you_mean
from .ground.interned import Interned, intern
from .ground.validation import INTEGER_BOUND, checked, integer, refused, shown
from .ranges.terms import Axis, Devices, Loop, Place, SubAxis, coordinate

# `data`, or `data.0:2`: one of the sub-axes that a refined mesh has instead of `data`.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[0-9]{1,18}:[0-9]{1,18})?")

LARGEST = 1 << 20
"""The most devices along an axis that is called `memory`: a larger number is taken for bytes."""
LONGEST = 20
"""The most digits of a number of trips that are read."""
# `device@all_4_8=4 of [device@all=8] at 4:8`: some devices of another set.
_PART = re.compile(r"(?P<own>[^\[\]]+) of \[(?P<whole>.+)\] at (?P<numbers>[0-9]+(?::[0-9]+){1,2}|[0-9]+(?: [0-9]+)*)")
# `t:8`: a loop and its trips.
_LOOP = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*):(?P<trips>[0-9]+)")


class UnknownAxis(Error, KeyError):
    """A name that the mesh does not have; also a `KeyError`, because `Mapping.get` catches `KeyError`."""


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Mesh(Interned, Mapping[str, int]):
    """Named axes of devices and how many there are along each, major to minor: `Mesh(data=4, model=2)`.

    A mesh does not name devices: you can partition a program for 4096 devices on a laptop and inspect it there. Devices are
    looked up only when the program runs. Meshes with the same axes in the same order are the same object. Raises `Error` for
    a name that is not an identifier, and for a size below 1.

    `slow` names the axes whose devices are connected by slow links, such as the network between pods: what a plan reports marks
    them, and choices by time weigh their bytes accordingly.

    `chip` names what the devices are: `v3`, `v4`, `v5e` (the default), `v5p`, `v6e`, `A100` or `H100`. A plan weighs bytes
    against flops by what that chip receives and computes in a second. `memory` is how much of a device's memory a plan may use,
    in text: `"12GiB"`; by default, all that the chip has. Integers are the sizes of axes of these names.

    ```
    Mesh(data=4, model=2)    data=0 [ 0 1 ]    device = data·2 + model
                             data=1 [ 2 3 ]
                             data=2 [ 4 5 ]
                             data=3 [ 6 7 ]

    Mesh(pod=2, data=4, slow="pod")    prints as `pod=2 slow, data=4`
    Mesh(data=8, chip="v5p")           prints as `data=8, chip=v5p`
    ```
    """

    pairs: tuple[tuple[str, int], ...]
    slow: tuple[str, ...]
    """The axes with slow links, in the order of the mesh."""
    devices: str
    """The name of the device set that the axes belong to; empty in a program with one set."""
    chip: Chip
    """What each device is."""
    trips: tuple[tuple[str, int], ...]
    """The loops in which tactics have placed ranges, outer first, each with its trips. They are places in time."""
    part: tuple[Mesh, tuple[int, ...]] | None
    """The set that this one is a part of, and the numbers of its devices there; None if it is whole."""
    apart: tuple[str, ...]
    """The axes along which its devices are several sets, in the order of the mesh."""
    places: tuple[Place, ...] = field(init=False)
    """The axes as places. An axis that is split appears as its sub-axes."""
    loops: tuple[Loop, ...] = field(init=False)
    """The loops as places."""

    @overload
    def __new__(cls, axes: Mapping[str, int] | None = None, /, *rest: Never, **more: int) -> Mesh: ...

    @overload
    def __new__(
        cls,
        axes: Mapping[str, int] | None = None,
        /,
        *rest: Never,
        slow: str | Sequence[str] = (),
        chip: str = DEFAULT,
        memory: str = "",
        **more: int,
    ) -> Mesh: ...

    def __new__(
        cls, axes: Mapping[str, int] | None = None, /, *rest: Never, slow: int | str | Sequence[str] = (), **more: int | str
    ) -> Mesh:
        if rest or not isinstance(axes, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            given = (axes, *rest) if rest else axes
            raise refused("axes", "a size for each axis, by name", given, "write pt.Mesh(data=4, model=2)")
        # An axis may be called `chip`, or `memory`, and keeps its place among the others.
        chip = CHIPS[DEFAULT] if integer(more.get("chip", 1)) is not None else chip_of(more.pop("chip"))
        size = integer(more.get("memory", 1))
        most = more.pop("memory") if size is None or size > LARGEST else ""
        chip = chip if most == "" else with_memory(chip, most)
        given = [*(axes or {}).items(), *more.items()]
        if wrong := [name for name, _ in given if not isinstance(name, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Error(f"{shown(wrong[0])} cannot name a mesh axis", helps=["name it by a string"])
        sizes = {str.__str__(name): cast(int, size) for name, size in given}
        pairs = tuple((_axis_name(name, size), _count(name, size)) for name, size in sizes.items())
        return intern(cls, pairs, _slow([name for name, _ in pairs], slow), "", chip, (), None, ())

    def _with(self, **fields: object) -> Mesh:
        """The same mesh with other fields."""
        return intern(Mesh, *(fields.get(name, getattr(self, name)) for name in Mesh.__match_args__))

    def on(self, devices: str) -> Mesh:
        """Returns the same mesh on the device set of this name. Its axes are other places: `data@left`."""
        if not isinstance(devices, str) or (devices and not _NAME.fullmatch(devices)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refused("devices", "the name of a device set", devices)
        return self._with(devices=devices, part=None)

    @checked
    def at(self, **coordinates: int) -> Mesh:
        """The devices at coordinates of some axes: a device set of its own, with the other axes.

        Raises `Error` for an axis that the mesh does not have, and for one without such a coordinate.

        ```
        pt.Mesh(stage=2, data=4).on("pipe").at(stage=1)   -->   data=4 on `pipe_stage1`, the last four devices of `pipe`
        ```
        """
        fixed = {name: integer(at) for name, at in coordinates.items()}
        for name, at in fixed.items():
            size = self[name]
            if at is None or not 0 <= at < size:
                title = f"axis `{name}` has no coordinate {shown(coordinates[name])}"
                raise Error(title, helps=[f"its {size} coordinates are 0 to {size - 1}"])
        fixed = {name: fixed[name] for name in dict.fromkeys((*self, *fixed)) if name in fixed}
        every = enumerate(itertools.product(*(range(size) for _, size in self.pairs)))
        names = [name for name, _ in self.pairs]
        numbers = [number for number, at in every if fixed.items() <= dict(zip(names, at, strict=True)).items()]
        kept = [(name, size) for name, size in self.pairs if name not in fixed]
        if not fixed:
            return self
        if len(kept) + len(fixed) != len(names):
            raise Error(f"a part of {self} is taken along whole axes", helps=["split axes of the part, not of the mesh"])
        return self._part(kept or [("device", 1)], numbers, "_".join(f"{name}{at}" for name, at in fixed.items()))

    def _slice(self, taken: slice) -> Mesh:
        """Some of the devices of a set with one axis: `pt.devices(8)[:2]`."""
        if len(self.pairs) != 1:
            raise Error(f"{self} has {len(self.pairs)} axes, and is not a row of devices", helps=["take a part of it by `at`"])
        ((name, size),) = self.pairs
        numbers = range(size)[taken]
        if not numbers or numbers.step < 0:
            title = f"a set of {size} devices has none at [{taken.start}:{taken.stop}:{taken.step or 1}]"
            raise Error(title, helps=["a set has a device at least, and they are in order"])
        label = _numbers_text(numbers).replace(":", "_")
        return self._part([(name, len(numbers))], numbers, label if self.devices else f"devices_{label}")

    def _part(self, pairs: Sequence[tuple[str, int]], numbers: Sequence[int], label: str) -> Mesh:
        """A set of some of the devices of this one, whose name continues with a label."""
        whole, slow = self.in_space, tuple(name for name in self.slow if name in dict(pairs))
        name = f"{self.devices}_{label}" if self.devices else label
        return whole._with(pairs=tuple(pairs), slow=slow, devices=name, part=(whole, tuple(numbers)), apart=())

    def check(self) -> None:
        for name, size in self.pairs:
            named = isinstance(name, str) and _NAME.fullmatch(name)  # pyright: ignore[reportUnnecessaryIsInstance]
            if not named or name.partition(":")[2] not in ("", str(size)):
                raise Error(f"`{name}` cannot name a mesh axis", helps=["use a letter, then letters, digits and `_`"])
        object.__setattr__(self, "places", tuple(_places(self.pairs, self.devices, self.apart)))
        apart = itertools.accumulate((trips for _, trips in self.trips), operator.mul, initial=self.size)
        object.__setattr__(self, "loops", tuple(Loop(*each, stride) for each, stride in zip(self.trips, apart, strict=False)))

    def __reduce__(self) -> tuple[Callable[..., Mesh], tuple[object, ...]]:
        return _mesh, (dict(self.pairs), self.slow, self.devices, self.chip, self.trips, self.part, self.apart)

    @staticmethod
    @checked
    def parse(text: str) -> Mesh:
        """The mesh that prints as `text`: `data=4, model=2`, or `pod=2 slow, data=4, chip=v5p`."""
        return _parsed(text)

    @property
    def axes(self) -> dict[str, int]:
        """Axis name to size, major to minor."""
        return dict(self.pairs)

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(size for _, size in self.pairs)

    @property
    def in_space(self) -> Mesh:
        """The mesh without its loops."""
        return self._with(trips=()) if self.trips else self

    @property
    def iterations(self) -> int:
        """The number of iterations of all devices: each runs all trips of the loops."""
        return self.size * math.prod(trips for _, trips in self.trips)

    def coordinates(self) -> Iterator[dict[Place, int]]:
        """The coordinates of each device, in device order: the last axis varies fastest."""
        for device in range(self.size):
            yield {place: coordinate(place, device) for place in self.places}

    @checked
    def place(self, name: str) -> Place:
        """The axis, or the sub-axis of a refined mesh, that a text names: `data`, `data.0:2`, `data@left`.

        Raises `Error` for one that the mesh does not have.
        """
        found = _names(self).get(name, ())
        return found[0] if len(found) == 1 else self._missing(name)

    def _missing(self, name: str) -> Never:
        """Raises the error for a name that no axis has, with the axes that come near."""
        whole, dot, part = name.partition(".")
        if not (found := _names(self).get(whole, ())):
            raise self._unknown(whole)
        size, _, count = found[0].axis.size, *part.partition(":")[1:]
        if not dot or len(found) > 1 or not count.isdecimal():
            have = " and ".join(f"`{each}`" for each in found)
            raise Error(f"`{name}` is not an axis of the mesh", helps=[f"`{whole}` is there as {have}"])
        if not int(count) or size % int(count):
            raise _undivided(name, whole, size)
        parts = f"{whole}.0={count}, {whole}.1={size // int(count)}"
        raise Error(f"`{name}` is not an axis of the mesh", helps=[f"write the mesh with the sub-axes: `{parts}`"])

    def refine(self, **parts: tuple[int, ...]) -> Mesh:
        """The same devices with axes split into sub-axes, major to minor: `a = a.0:2 * a.1:4`.

        ```
        Mesh(a=8).refine(a=(2, 4))  -->  Mesh({"a.0": 2, "a.1": 4}), whose axes are `a.0:2` and `a.1:4`
        ```
        """
        axes: dict[str, int] = {}
        for name in parts:
            whole, helps = self[name], [f"write the sizes of its sub-axes, major to minor: their product is {self[name]}"]
            is_list = isinstance(parts[name], tuple | list)  # pyright: ignore[reportUnnecessaryIsInstance]
            if not is_list or not parts[name] or not all(type(size) is int and size > 0 for size in parts[name]):
                raise Error(f"`{name}` splits into sub-axes of 1 device or more each, got {shown(parts[name])}", helps=helps)
            if math.prod(parts[name]) != whole:
                raise Error(f"`{name}` ({whole} devices) does not split into {' * '.join(map(str, parts[name]))}", helps=helps)
        for name, size in self.pairs:
            axes |= {f"{name}.{i}": part for i, part in enumerate(parts[name])} if name in parts else {name: size}
        return _mesh(axes, self.slow, self.devices, self.chip, self.trips, self.part, self.apart)

    @checked
    def sub_axes(self, name: str) -> tuple[int, ...]:
        """The sizes of the sub-axes that a refined mesh has for `name`, major to minor; empty if it has none."""
        return tuple(size for axis, size in self.pairs if axis.startswith(name + "."))

    def having(self, name: str) -> Mesh:
        """Returns a mesh that has this axis. A name like `data.0:2` splits `data` in two, if no mesh axis is called so yet.

        A name like `t:8` is a loop: a place in time, of 8 trips. It needs no devices.

        ```
        Mesh(data=8), data.0:2  -->  Mesh({"data.0": 2, "data.1": 4})
        Mesh(data=8), t:4       -->  data=8, t:4
        ```
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refused("name", "the name of an axis", name)
        if loop := _LOOP.fullmatch(name):
            return self._with_loop(loop["name"], int(loop["trips"][:LONGEST]))
        whole, dot, part = name.partition(".")
        if not dot or self.parts(name, ()):
            return self
        size, named = self[whole], _NAME.fullmatch(name)
        if self.sub_axes(whole):
            have = " and ".join(f"`{axis}`" for axis in self.parts(whole))
            helps = ["use these", f"or split it into others from the start: pt.{self.whole()!r}.refine({whole}=...)"]
            raise Error(f"`{name}` is not a sub-axis of `{whole}`, which is split into {have}", helps=helps)
        if not named:
            helps = [f'give its number and its size, "{whole}.0:2": the first of two parts, which has 2 devices']
            raise Error(f"`{name}` is not a sub-axis of `{whole}` ({size} devices)", helps=helps)
        index, count = map(int, part.split(":"))
        if index > 1:
            helps = [f"for more, split it from the start: pt.{self!r}.refine({whole}=...)"]
            raise Error(f"`{name}` is not a sub-axis of `{whole}`: naming one splits it into two, 0 and 1", helps=helps)
        if count < 1 or size % count:
            raise _undivided(name, whole, size)
        return self.refine(**{whole: (size // count, count) if index else (count, size // count)})

    def _with_loop(self, name: str, trips: int) -> Mesh:
        """Returns a mesh that has this loop too, inside of those that it has."""
        have, helps = dict(self.trips).get(name, trips), [f'a loop has a name of its own: "t:{trips}"']
        if self.parts(name, ()) and name not in dict(self.trips):
            raise Error(f"`{name}:{trips}` cannot be a loop: `{name}` is an axis of the mesh", helps=helps)
        if have != trips:
            title = f"loop `{name}` has {have} trips, and cannot have {trips} too"
            raise Error(title, helps=[f'write "{name}:{have}"', f'or use another loop: "u:{trips}"'])
        if not 0 < trips < INTEGER_BOUND:
            most = "at least once" if not trips else f"less than {INTEGER_BOUND:,} times"
            raise Error(f"loop `{name}` has {trips:,} trips{' or more' * (trips > 0)}", helps=[f"a loop runs {most}"])
        trips_of = self.trips if name in dict(self.trips) else (*self.trips, (name, trips))
        return self._with(trips=trips_of)

    def whole(self) -> Mesh:
        """Returns the mesh before it was refined."""
        wholes = {place.name: place.axis.size for place in self.places}
        slow = [name.partition(".")[0] for name in self.slow]
        return _mesh(wholes, slow, self.devices, self.chip, self.trips, self.part, self.apart)

    @checked
    def is_slow(self, axes: Sequence[str]) -> bool:
        """Whether data sent over these axes crosses slow links."""
        return not set(self.slow).isdisjoint(axes)

    def split(self, axis: Place) -> tuple[Place, ...]:
        """Returns the axis itself or, if the mesh splits it, the sub-axes that replace it, major to minor."""
        if not isinstance(axis, Place):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refused("axis", "an axis of the mesh, as a place", axis, 'write mesh.split(mesh.place("data"))')
        return (axis,) if axis in (*self.places, *self.loops) else tuple(each for each in self.places if each.axis is axis)

    def named(self, name: str) -> tuple[Place, ...]:
        """Returns the places of the axes that `parts` names. Raises `Error` for an unknown name."""
        self.parts(name)
        return _names(self)[name]

    def parts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Returns the names of the axes that `name` stands for, major to minor: one axis, or all sub-axes that replace it."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refused("name", "the name of an axis", name)
        places = _names(self).get(name, ())
        if places or default is not None:
            return tuple(own for own, place in self.own_names() if place in places) or default or ()
        raise self._unknown(str.__str__(name))

    def own_names(self) -> Iterator[tuple[str, Place]]:
        """Each place with the name that the mesh has for it: `data`, `data.0:2`, `t:8`."""
        yield from zip(self, self.places, strict=True)
        yield from ((str(loop), loop) for loop in self.loops)

    @overload
    def __getitem__(self, name: str) -> int: ...
    @overload
    def __getitem__(self, name: slice | int) -> Mesh: ...
    def __getitem__(self, name: str | slice | int) -> int | Mesh:
        if isinstance(name, slice):
            return self._slice(name)
        if isinstance(name, int):
            return self._slice(slice(name, name + 1 or None))
        for axis, size in self.pairs:
            if axis == name:
                return size
        return math.prod(place.size for place in self.named(name))

    def _unknown(self, name: str) -> UnknownAxis:
        axes = [*map(str, (*self.places, *self.loops))]
        have = ", ".join(f"`{axis}`" for axis in axes) or "no axes"
        helps = did_you_mean(name, axes, f"the mesh has {have}", most=3)
        if ":" in name and "." not in name:
            helps = [f'a loop is a name and its trips: "{name.partition(":")[0]}:8"', *helps]
        return UnknownAxis(f"the mesh has no axis `{name}`", helps=helps)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __contains__(self, name: object) -> bool:
        return any(axis == name for axis, _ in self.pairs)

    def __eq__(self, other: object) -> bool:
        # Interned; `Mapping` would compare the items in any order and remove the hash.
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        far = f"@{self.devices}" if self.devices else ""
        marks = {name: " slow" * (name in self.slow) + " sets" * (name in self.apart) for name, _ in self.pairs}
        axes = (f"{_short(name)}{far}={size}{marks[name]}" for name, size in self.pairs)
        text = ", ".join([*axes, *map(str, self.loops), *(f"{name}={value}" for name, value in said(self.chip))])
        return text if self.part is None else f"{text} of [{self.part[0]}] at {_numbers_text(self.part[1])}"

    def __repr__(self) -> str:
        if self.part is not None or self.apart:
            return f'Mesh.parse("{self}")'
        names = [_short(name) for name in self.slow]
        slow = [f"slow={tuple(names) if len(names) > 1 else names[0]!r}"] if names else []
        chip = [f"{name}={value!r}" for name, value in said(self.chip)]
        on = f'.on("{self.devices}")' if self.devices else ""
        loops = "".join(f'.having("{loop}")' for loop in self.loops)
        return f"Mesh({', '.join([*(f'{_short(name)}={size}' for name, size in self.pairs), *slow, *chip])}){on}{loops}"


@cache
def _names(mesh: Mesh) -> Mapping[str, tuple[Place, ...]]:
    """Maps each accepted name to its axes: `data.0:2`, `data.0`, `data@left`, and `data` for all parts of `data`."""
    found: dict[str, dict[Place, None]] = {}
    for own, place in mesh.own_names():
        for text in (str(place), own, str(place.axis), place.name):
            for name in (text, _short(text)):
                found.setdefault(name, {})[place] = None
    return {name: tuple(places) for name, places in found.items()}


def _undivided(name: str, whole: str, size: int) -> Error:
    """The error for a sub-axis with a size that does not divide its axis."""
    fits = ", ".join(str(each) for each in range(2, size) if size % each == 0) or "none, because that is a prime"
    return Error(f"`{name}` does not divide `{whole}` ({size} devices)", helps=[f"sizes that do: {fits}"])


def axis_of(name: str, *meshes: Mesh, split: bool = False) -> Place:
    """Finds the axis of this name in any of the meshes. Raises `Error` if none has it, or if it names different axes.

    With `split`, it may be an axis that the mesh splits.
    """
    if not meshes:
        raise Error(
            f"`{name}` is an axis of no mesh",
            helps=['write `builtin.module attributes {array.mesh = "data=4"} { ... }` around it'],
        )
    named = [places for mesh in meshes if (places := _names(mesh).get(name))]
    axes = dict.fromkeys(places[0] for places in named if len(places) == 1)
    found = [axis for axis in axes if name in (str(axis), _short(str(axis)))] or [*axes]
    if len(found) > 1:
        sizes = " and ".join(str(axis.size) for axis in found)
        sets = " or ".join(f"`{axis}`" for axis in found if "@" in str(axis)) or f"`{name}@left`"
        helps = [f"name the device set that it belongs to: {sets}"]
        raise Error(f"`{name}` names several axes, with {sizes} devices", helps=helps)
    wholes = [places[0].axis for places in named if split]
    near = (mesh for mesh in meshes if name.partition(".")[0] in _names(mesh))
    return next(iter([*found, *wholes]), None) or next(near, meshes[-1]).place(name)


def loop_of(name: str, trips: int, *meshes: Mesh) -> Loop:
    """The loop of this name in any of the meshes; if none has it, a loop on no mesh. Raises Error if it has other trips."""
    found = next((loop for mesh in meshes for loop in mesh.loops if loop.name == name), Loop(name, trips))
    if found.size != trips:
        raise Error(f"loop `{name}` has {found.size} trips, not {trips}", helps=[f"write `{found}`"])
    return found


def _numbers_text(numbers: Sequence[int]) -> str:
    """Numbers of devices, as a slice if they are one: `4:8`, `0:8:2`, `1 2 5`."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if step > 0 and [*numbers] == [*range(numbers[0], numbers[-1] + 1, step)]:
        return f"{numbers[0]}:{numbers[-1] + 1}" + (f":{step}" if step != 1 else "")
    return " ".join(map(str, numbers))


def _parsed_part(text: str, part: re.Match[str]) -> Mesh:
    whole, mesh, said = Mesh.parse(part["whole"]), Mesh.parse(part["own"]), part["numbers"]
    parts = [int(each[:LONGEST]) for each in re.split("[: ]+", said)]
    numbers = range(*parts)[: whole.size + 1] if ":" in said else parts
    if len(numbers) != mesh.size or len({*numbers}) < mesh.size or not all(0 <= each < whole.size for each in numbers):
        title = f"`{said}` are not {mesh.size} devices of a set of {whole.size}: `{text}`"
        raise Error(title, helps=["write their numbers in the whole set: `at 4:8`"])
    fields = mesh.pairs, mesh.slow, mesh.devices, mesh.chip, mesh.trips, (whole, tuple(numbers)), mesh.apart
    return intern(Mesh, *fields)


@cache
def _parsed(text: str) -> Mesh:
    if part := _PART.fullmatch(text):
        return _parsed_part(text, part)
    axes: dict[str, int] = {}
    slow, apart, loops = list[str](), list[str](), list[str]()
    sets, of_chip = dict[str, None](), dict[str, str]()
    for part in filter(str.strip, text.split(",")):
        name, equals, size = (word.strip() for word in part.partition("="))
        size, *marks = size.split() or [""]
        if name in ("chip", "memory") and equals and not size.isdecimal() and not marks:
            if name in of_chip:
                raise Error(f"the devices of a mesh are of one kind, but it says its {name} twice: `{text}`")
            of_chip[name] = size
            continue
        if _LOOP.fullmatch(part.strip()):
            loops.append(part.strip())
            continue
        name, _, devices = name.partition("@")
        sets[devices] = None
        slow += [name] * ("slow" in marks)
        apart += [name] * ("sets" in marks)
        if not equals or not size.isdecimal() or marks not in ([], ["slow"], ["sets"], ["slow", "sets"]):
            raise Error(f"`{part.strip()}` is not a mesh axis", helps=["write a mesh as `data=4, model=2`"])
        if len(size) > 18:
            raise Error(
                f"mesh axis `{name}` has a size of {len(size)} digits", helps=["the size is the number of devices along it"]
            )
        if name in axes:
            raise Error(f"mesh axis `{name}` is declared twice in `{text}`")
        axes[name] = int(size)
    if len(sets) > 1:
        raise Error(f"the axes of a mesh belong to one device set: `{text}`")
    chip = chip_of(of_chip.get("chip", DEFAULT))
    made = _mesh(axes, slow, "".join(sets), with_memory(chip, of_chip["memory"]) if "memory" in of_chip else chip)
    return reduce(Mesh.having, loops, in_sets(made, apart))


def _mesh(
    axes: Mapping[str, int],
    slow: Sequence[str],
    devices: str,
    chip: Chip,
    trips: Sequence[tuple[str, int]] = (),
    part: tuple[Mesh, tuple[int, ...]] | None = None,
    apart: tuple[str, ...] = (),
) -> Mesh:
    """Makes a mesh from the arguments that `Mesh.__reduce__` stores."""
    space = Mesh(axes, slow=slow).on(devices)
    return intern(Mesh, space.pairs, space.slow, space.devices, chip, tuple(trips), part, apart)


def _places(pairs: Sequence[tuple[str, int]], name: str, apart: tuple[str, ...]) -> Iterator[Place]:
    """Yields the axes as places, major to minor. Raises `Error` unless the sub-axes of an axis are its parts, in order."""
    groups = [(axis, [*of]) for axis, of in itertools.groupby(pairs, key=lambda pair: pair[0].partition(".")[0])]
    wholes = tuple((axis, math.prod(size for _, size in parts)) for axis, parts in groups)
    devices = Devices(wholes, name, apart)
    for (axis, parts), (_, whole) in zip(groups, wholes, strict=True):
        place = Axis(axis, whole, devices)
        if parts == [(axis, whole)]:
            yield place
            continue
        for number, (part, size) in enumerate(parts):
            if part != f"{axis}.{number}:{size}":
                helps = [f"name the parts of an axis one after another: `{axis}.0`, `{axis}.1`, ..."]
                raise Error(f"`{part}` cannot be part {number} of `{axis}`", helps=helps)
            yield SubAxis(place, (size for _, size in parts), number)


def _slow(axes: Sequence[str], given: int | str | Sequence[str]) -> tuple[str, ...]:
    """Checks `slow` and returns the axes that it names. The name of a split axis stands for all of its sub-axes."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
        helps = [
            'name the axes with slow links: pt.Mesh(pod=2, data=4, slow="pod")',
            f'an axis of this name: {{"slow": {shown(given)}}}',
        ]
        raise Error(f"`slow` takes names of axes, got {shown(given)}", helps=helps)
    names = [str.__str__(name) for name in names]
    found = {name: [axis for axis in axes if name in (axis, _short(axis), axis.partition(".")[0])] for name in names}
    if unknown := [name for name, its in found.items() if not its]:
        helps = did_you_mean(unknown[0], axes, f"the mesh has {', '.join(f'`{axis}`' for axis in axes) or 'no axes'}")
        raise UnknownAxis(f"the mesh has no axis `{unknown[0]}`", helps=helps)
    return tuple(axis for axis in axes if any(axis in its for its in found.values()))


def _axis_name(name: str, size: int) -> str:
    """The name of an axis as layouts write it: a sub-axis with its size, `data.0:2`."""
    is_bare = isinstance(name, str) and "." in name and ":" not in name  # pyright: ignore[reportUnnecessaryIsInstance]
    return f"{name}:{size}" if is_bare else name


def _short(name: str) -> str:
    """The name of an axis without its size: `data.0`."""
    return name.partition(":")[0]


def _count(name: str, size: int) -> int:
    """Checks the size of an axis and returns it as an int. NumPy integers are accepted, `True` is not."""
    count = integer(size) or 0
    if not 0 < count < INTEGER_BOUND:
        raise Error(f"mesh axis `{name}` has size {shown(size)}", helps=["the size is the number of devices along it"])
    return count


def in_sets(mesh: Mesh, along: Iterable[str]) -> Mesh:
    """The same mesh, whose devices are a set for each coordinate of these axes: values lie and go along the others."""
    axes = {*along}
    apart = tuple(name for name, _ in mesh.pairs if name in axes)
    return intern(Mesh, mesh.pairs, mesh.slow, mesh.devices, mesh.chip, mesh.trips, mesh.part, apart)


def with_parts(mesh: Mesh, places: Iterable[Place]) -> Mesh:
    """The mesh with the axes split whose sub-axes are among these places; itself if there are none."""
    split = {each.name: each.split for each in places if isinstance(each, SubAxis) and each.axis in mesh.places}
    return mesh.refine(**split) if split else mesh
