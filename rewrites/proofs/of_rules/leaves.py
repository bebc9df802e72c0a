"""The values of a law's variables: for all sizes at once, for given sizes, and those of a model of the solver.

A variable array is a function of its own, of the coordinates that it may differ along and of the index. What heads ask of its
elements is known wherever one of these occurs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ..solver import z3
from ..terms import Terms
from ..values import Array, Axis, Complex, Held, Here, Number, Spread, Truth
from .collective_heads import Implied
from .heads import Everywhere
from .statement import VariableKind

Fact = Callable[..., Truth]
AXIS = ("stride", "before", "width")


@dataclass(eq=False)
class SymbolicLeaves:
    """Leaves that are terms. Sizes are constants, or numbers that are given."""

    world: Terms
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    same: Mapping[str, str] = field(default_factory=dict[str, str])
    """The axes that are one."""
    refined: dict[int, list[Fact]] = field(default_factory=lambda: defaultdict(list))
    sizes: dict[str, Any] = field(default_factory=dict[str, Any])
    made: dict[str, Any] = field(default_factory=dict[str, Any])

    def size(self, name: str) -> Number:
        self.sizes[name] = z3.Int(name)
        return self.given.get(name, self.sizes[name])

    def bound(self, kinds: Mapping[str, VariableKind]) -> Mapping[str, Any]:
        self.made = {name: self.leaf(name, kind) for name, kind in kinds.items()}
        return self.made

    def named_sizes(self, asked: Iterable[Any]) -> Mapping[str, Any]:
        """The sizes of arrays that are equal to others by what is asked, so that the solver need not find it out."""
        found: dict[str, Any] = {}
        for fact in asked:
            if z3.is_eq(fact) and (name := str(fact.arg(0))) not in found and name in self.sizes and "(" in name:
                places = [(self.sizes[each], size) for each, size in found.items()]
                size = z3.substitute(fact.arg(1), *places) if places else fact.arg(1)
                if str(size) != name:
                    found[name] = size
        return found

    def leaf(self, name: str, kind: VariableKind) -> Any:
        along = tuple(dict.fromkeys(self.same.get(each, each) for each in kind.along))
        match kind.kind:
            case "axis":
                name = self.same.get(name, name)
                return Axis(name, self.size(f"size({name})"), *(self.size(f"{part}({name})") for part in AXIS))
            case "size" | "row" | "dim" | "stride":
                return self.size(name)
            case "monoid" | "scheme":
                return name
            case "element":
                return Array(None, lambda here, i: self.call(name, self.world.element, ()))
            case "layout":
                return self.layout(name)
            case "held":
                return self.held(name, along)
            case each:
                sorts = {"truths": z3.BoolSort(), "positions": z3.IntSort()}
                return self.array(name, along, sorts.get(each, self.world.element))

    def call(self, name: str, sort: Any, arguments: tuple[Number, ...]) -> Number:
        if self.world.kind == "complex" and sort == self.world.element:
            return Complex(*(self.apply(f"{name}.{part}", sort, arguments) for part in ("real", "imag")))
        return self.apply(name, sort, arguments)

    def apply(self, name: str, sort: Any, arguments: tuple[Number, ...]) -> Number:
        return self.world.function(f"{name}", len(arguments), sort)(*arguments) if arguments else z3.Const(name, sort)

    def array(self, name: str, along: tuple[str, ...], sort: Any) -> Array:
        size = self.size(f"rows({name})")

        def at(here: Here, i: Number) -> Number:
            found = self.call(name, sort, (*(here[each] for each in along), i))
            for fact in self.refined[id(made)]:
                self.know(z3.Implies(z3.And(i >= 0, i < size), fact(here, i, found)))
            return found

        made = Array(size, at)
        return made

    def held(self, name: str, along: tuple[str, ...]) -> Held:
        def has(here: Here, g: Number) -> Truth:
            found = self.apply(f"has {name}", z3.BoolSort(), (*(here[each] for each in along), *_parts(g)))
            for fact in self.refined[id(made)]:
                self.know(z3.Implies(found, fact(here, g)))
            return found

        made = Held(has, lambda here, g: self.call(name, self.world.element, (*(here[each] for each in along), *_parts(g))))
        return made

    def layout(self, name: str) -> Spread:
        extent, count, block = (self.size(f"{part}({name})") for part in ("extent", "count", "block"))
        whole, number, local = (f"{part} {name}" for part in ("whole", "number", "local"))

        def index(c: Number, i: Number) -> Number:
            found = self.apply(whole, z3.IntSort(), (c, i))
            back = (self.apply(number, z3.IntSort(), (found,)) == c, self.apply(local, z3.IntSort(), (found,)) == i)
            self.know(z3.Implies(z3.And(c >= 0, c < count, i >= 0, i < block), z3.And(found >= 0, found < extent, *back)))
            return found

        def of(part: str) -> Callable[[Number], Number]:
            def find(g: Number) -> Number:
                c, i = (self.apply(each, z3.IntSort(), (g,)) for each in (number, local))
                there = self.apply(whole, z3.IntSort(), (c, i)) == g
                self.know(z3.Implies(z3.And(g >= 0, g < extent), z3.And(c >= 0, c < count, i >= 0, i < block, there)))
                return c if part == number else i

            return find

        return Spread(name, extent, count, block, index, of(number), of(local))

    def know(self, fact: Any) -> None:
        if not self.world.hides(fact):
            self.world.facts.append(fact)

    def ask(self, asked: Any, places: list[tuple[Here, Number]]) -> list[Any]:
        """What is asked, as facts; of an array that is no variable, at these places."""
        match asked:
            case Everywhere(array, fact):
                self.refined[id(array)].append(fact)
                is_variable = any(array is each for each in self.made.values())
                return [] if is_variable else [fact(here, i, array.at(here, i)) for here, i in places]
            case Implied(held, fact):
                self.refined[id(held)].append(fact)
                return []
            case fact:
                return [fact]


def _parts(g: Number) -> tuple[Number, ...]:
    return cast("tuple[Number, ...]", g) if isinstance(g, tuple) else (g,)
