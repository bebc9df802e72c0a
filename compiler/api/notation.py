"""`pt.load` and `pt.parse`: a program in index notation, as JAX functions, a mesh and plans.

mlp = pt.load("mlp.partita")
mlp.functions["mlp"](x, w1, w2)      a function like any other: jax.jit, jax.grad, pt.plan
mlp.plan("zero3").counts()           the plan of that name, with the annotations of the text
"""

from __future__ import annotations

import inspect
import itertools
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from jax import ShapeDtypeStruct

from ...dialects.ground.errors import Error, did_you_mean
from ...dialects.ground.validation import checked, refused, text_of
from ...dialects.mesh import Mesh
from ..inputs.files import path_of, read_text
from ..inputs.string_literals import Written
from ..jax_private import jax
from ..notation.check import CheckedFile, check
from ..notation.codegen import elaborate
from ..notation.diagnostics import Text
from ..notation.terms import CheckedFunction
from .notation_plans import Block, annotated, plan_block
from .plan import Plan, plan as make_plan
from .tactic_text import PlanStep


@dataclass(frozen=True, eq=False)
class Notation:
    """A program in index notation. Made by `pt.load` and `pt.parse`, which check all of it.

    `functions` are functions on JAX arrays; `mesh` is None if the text declares none; `plans` are the names of its plans.
    """

    program: CheckedFile
    functions: Mapping[str, Callable[..., Any]]
    blocks: Mapping[str, Block]
    text: str
    """The text of the program."""

    def __repr__(self) -> str:
        return f"<{self.file}: {', '.join([*self.functions, *(f'plan {name}' for name in self.blocks)])}>"

    @property
    def file(self) -> str:
        """The name of the file, without its folder."""
        return Path(self.program.text.file).name

    @property
    def mesh(self) -> Mesh | None:
        return self.program.mesh

    @property
    def plans(self) -> tuple[str, ...]:
        return tuple(self.blocks)

    @checked
    def arguments(self, function: str | None = None) -> dict[str, ShapeDtypeStruct]:
        """The types of a function's arguments, by name, as `jax.ShapeDtypeStruct`s; by default of the last function."""
        found = self._function(function)
        return {each.name: jax.ShapeDtypeStruct(each.shape, each.dtype) for each in found.arguments}

    @checked
    def plan(self, name: str | None = None, *, function: str | None = None, mesh: Mesh | None = None) -> Plan:
        """The plan of that name; without a name, the annotations of a function, by default the last.

        `mesh` replaces the text's mesh. Raises Error for an unknown name, and for a tactic that is refused, at its line.
        """
        if name is not None:
            self.block(name)
        chosen = self._function(self.blocks[name].function if name is not None and self.functions else function)
        if (over := mesh or self.mesh) is None:
            raise Error(
                f"`{self.file}` names no mesh",
                helps=["write `mesh data=4` in the text, or pass mesh=pt.Mesh(data=4), or --mesh data=4 on the command line"],
            )
        started = make_plan(self.functions[chosen.name], over, *self.arguments(chosen.name).values())
        steps = self.blocks[name].steps if name is not None else ()
        return annotated(self.program, chosen, started).apply(*steps)

    @checked
    def tactics(self, name: str | None = None) -> tuple[PlanStep, ...]:
        """The tactics of a plan of a JAX function, to apply to a plan of it; the name can be left out if there is one plan.

        pt.jit(step, mesh=saved.mesh, tactics=saved.tactics())      plan.apply(*saved.tactics())
        """
        return self.block(name).steps

    @checked
    def block(self, name: str | None = None, function: str = "") -> Block:
        """A `plan` block by its name; without one, the only block, or that of this function. Raises Error for another name."""
        named = [each for each in self.blocks.values() if function in (each.function, each.name)]
        only = named if len(named) == 1 else [*self.blocks.values()] if len(self.blocks) == 1 else [None]
        found = only[0] if name is None else self.blocks.get(name)
        if found is None and name is None and self.blocks:
            helps = [f'choose one: pt.load("{self.file}").tactics("{next(iter(self.blocks))}")']
            raise Error(f"`{self.file}` has several plans: {', '.join(self.blocks)}", helps=helps)
        if found is None:
            helps = did_you_mean(name or "", self.blocks, f"its plans: {', '.join(self.blocks) or 'none'}")
            raise Error(f"`{self.file}` has no plan" + (f" `{name}`" if name is not None else ""), helps=helps)
        return found

    def _function(self, name: str | None) -> CheckedFunction:
        known = self.program.functions
        if not known:
            helps = ["write one: `fn f(x: f32[8]) -> f32[8]`"]
            helps = [f'to partition a JAX function: pt.replay(step, "{self.file}", *args)'] if self.blocks else helps
            raise Error(f"`{self.file}` has no function", helps=helps)
        if name is not None and name not in known:
            helps = did_you_mean(name, known, f"its functions: {', '.join(known)}")
            raise Error(f"`{self.file}` has no function `{name}`", helps=helps)
        return known[name or list(known)[-1]]


_NUMBERS = itertools.count(1)


def load(file: str | Path) -> Notation:
    """Read a `.partita` file. Raises Error, with line, caret and help, for the first mistake in it."""
    return parse(read_text(file), str(path_of(file)))


def parse(source: str, file: str = "") -> Notation:
    """Read a program from its text; errors and source lines refer to it as `file`."""
    if not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused("source", "the text of a program", source, "pt.parse takes a program's text, pt.load its file")
    if "\0" in (file := text_of("file", file)) or not file.isprintable():
        raise refused("file", "the name of a file", file)
    # Editors on Windows begin a file with a mark of its encoding.
    source = str.__str__(source).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    frame = inspect.currentframe()
    program = check(Text(file, source) if file else _inline(source, frame.f_back if frame else None))
    functions = elaborate(program)
    blocks = {name: plan_block(program, name, node) for name, node in program.plans.items()}
    return Notation(program, functions, blocks, source)


def _inline(source: str, frame: FrameType | None) -> Text:
    """Makes the text of a program that is not in a file.

    It is located in the Python file that contains it as a literal, if any.
    """
    written = Written.of(source, frame)
    if source.strip() and written.file.endswith(".py"):
        return Text(written.file, written.laid_out(), "".join(linecache.getlines(written.file)))
    # Python finds its lines by this name.
    return Text(f"<notation {next(_NUMBERS)}>", source)
