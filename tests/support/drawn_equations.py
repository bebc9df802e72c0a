"""Random programs of two equations over small arrays, in index notation: every kind of position, fold and function."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

EXTENTS = {"a": 2, "b": 3, "c": 4}
ARRAYS = {"s": "a", "v": "b", "x": "ab", "y": "bc", "z": "ac", "t": "abc"}
HEAD = (
    "s: f32[2], v: f32[3], x: f32[2, 3], y: f32[3, 4], z: f32[2, 4], t: f32[2, 3, 4], w: f32[6], u: f32[9], "
    "n: i32[2], m: i32[2, 4], p: i32[]"
)
"""`n` and `m` hold positions of `b`; `w` has a dim of a times b, `u` one for strides and windows."""


@dataclass
class Drawn:
    """The indices that a term may use, by the letter of their range, each with its name."""

    draw: st.DrawFn
    scope: list[tuple[str, str]]
    names: list[int] = field(default_factory=lambda: [0])

    def one(self, *of: str) -> str:
        return self.draw(st.sampled_from(of))

    def index(self, letter: str) -> str | None:
        """An index over that range, if one is in scope."""
        known = [name for kind, name in self.scope if kind == letter]
        return self.one(*known) if known else None

    def position(self, letter: str) -> str:
        """A position of a dim with that range."""
        ways = [name for name in (self.index(letter),) if name] * 4 + [str(self.draw(st.integers(0, EXTENTS[letter] - 1)))]
        if name := self.index(letter):
            ways.append(f"{EXTENTS[letter] - 1} - {name}")
        if letter == "b" and (name := self.index("a")):
            ways += [f"n[{name}]", f"{name} + 1"]
            if other := self.index("c"):
                ways.append(f"m[{name}, {other}]")
        if letter == "c" and (name := self.index("a")):
            ways += [f"p + {name}", f"2*{name}"]
        return self.one(*ways)

    def read(self) -> str:
        if (a := self.index("a")) and self.draw(st.integers(0, 5)) == 0:
            if b := self.index("b"):
                return self.one(f"w[({a} {b})]", f"w[({b} {a})]", f"u[2*{a} + 3*{b}]")
            return f"u[3*{a} + 2]"
        name = self.one(*ARRAYS)
        return f"{name}[{', '.join(self.position(letter) for letter in ARRAYS[name])}]"

    def fold(self, depth: int) -> str:
        letter, name = self.one("a", "b", "c"), f"{'ijklo'[self.names[0] % 5]}{self.names[0]}"
        self.names[0] += 1
        own = Drawn(self.draw, [*self.scope, (letter, name)], self.names)
        fold = self.one("sum", "sum", "sum", "max", "min", "prod")
        body = own.product(depth - 1)
        if fold in ("sum", "max") and (out := self.index("b")) and self.draw(st.booleans()):
            body = self.one(
                f"u[3*{out} + {name} - 1]", f"u[2*{out} + 2*{name} - 1] * {body}", f"v[{out} + {name} - 1] * {body}"
            )
        if fold == "sum" and letter == "a" and (at := self.index("b")) and self.draw(st.booleans()):
            body = f"[n[{name}] = {at}] * {body}"
        said = f"{fold}({name}: {EXTENTS[letter]})"
        return self.one(f"({said} {body})", f"({said} ({body}))")

    def product(self, depth: int) -> str:
        return " * ".join(self.factor(depth) for _ in range(self.draw(st.integers(1, 3))))

    def factor(self, depth: int) -> str:
        match self.draw(st.integers(0, 9)) if depth > 0 else 0:
            case 1 | 2 | 3:
                return self.fold(depth)
            case 4:
                return f"{self.one('tanh', 'abs', 'sin', 'relu', 'square')}({self.term(depth - 1)})"
            case 5:
                return f"{self.one('max', 'min')}({self.term(depth - 1)}, {self.one('0.5', self.term(depth - 1))})"
            case 6:
                return f"where({self.condition()}, {self.term(depth - 1)}, {self.one('0', self.term(depth - 1))})"
            case 7:
                return f"[{self.condition()}] * {self.read()}"
            case 8:
                return f"({self.term(depth - 1)})"
            case _:
                return self.read()

    def condition(self) -> str:
        known = [name for _, name in self.scope]
        return f"{self.one('p', *known)} {self.one('<', '>=', '==')} {self.one('1', *known)}"

    def term(self, depth: int) -> str:
        first = self.product(depth)
        sign = "" if first.startswith("[") else self.one("", "", "-")
        return sign + first + self.one("", "", f" + {self.product(depth)}", f" - {self.product(depth)}", " / 2")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A function whose second equation reads what the first one makes."""
    letters = draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3))
    shape = ", ".join(str(EXTENTS[letter]) for letter in letters)
    scope = [(letter, letter) for letter in letters]
    left = f"[{', '.join(f'{letter}: {EXTENTS[letter]}' for letter in letters)}]" if letters else ""
    again = f"r[{', '.join(letters)}]" if letters else "r"
    first, second = Drawn(draw, scope).term(2), Drawn(draw, scope).term(1)
    body = f"  r{left} = {first}\n  q{left} = {again} + {second}\n  return r, q\n"
    return f"fn drawn({HEAD}) -> f32[{shape}], f32[{shape}] {{\n{body}}}\n"
