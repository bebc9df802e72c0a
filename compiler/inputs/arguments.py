"""The arguments of a traced function: which are static, how leaves are named, and which values they accept.

A leaf's name is its argument's name and the path to it; a static argument has no leaves.

    def step(params, batch, *xs, mode)    step(p, b, x0, x1, mode="train"), static_argnames="mode"
                                          -->  params/w, params/b, batch/x, batch/y, xs/0, xs/1
"""

import copy
import inspect
import linecache
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from tokenize import TokenError
from typing import Any, Self, TypeVar, cast

from jax.core import ShapedArray

from ...dialects.definitions.registry import definitions
from ...dialects.ground.errors import Error, Location, did_you_mean
from ..jax_private import Ref, shaped_abstractify, trace_context, tree
from .checks import integer, patterns_of, refused, shown
from .lines import cell_or_file
from .names import Patterns, as_patterns, escape, join, match, path_parts

F = TypeVar("F", bound=Callable[..., object])

_ANYTHING = inspect.signature(lambda *args, **kwargs: None)
# A tree that contains functions or flags is usually not hashable, so it cannot be static.
_APART = "split the tree: pass its arrays and close over the rest, as with `eqx.partition(model, eqx.is_array)`"


@dataclass(frozen=True)
class UserFunction:
    """A user's function, with the names of its static arguments, and of those that it donates."""

    fn: Callable[..., object]
    static: tuple[str, ...]
    donated: tuple[str, ...] = ()

    @classmethod
    def of(cls, fn: Callable[..., object], static_argnames: str | Sequence[str] = ()) -> Self:
        """Makes the Function of `fn`. Raises Error if it is not callable, or lacks an argument that is declared static."""
        if not callable(fn):
            raise refused("fn", "a function", fn, "pass the function to trace as the first argument")
        self = cls(fn, _static_names(static_argnames))
        for name in self.static:
            if name not in self.signature.parameters and not self.keyword:
                title = f"`static_argnames` names `{name}`, but `{self.name}` has no such argument"
                raise self.error(title, *did_you_mean(name, self.signature.parameters))
        return self

    @cached_property
    def name(self) -> str:
        named = self.fn
        while not hasattr(named, "__name__") and hasattr(named, "func"):
            named = cast(Any, named).func
        return getattr(named, "__name__", type(self.fn).__name__)

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature; `(*args, **kwargs)` if Python cannot determine it."""
        try:
            return inspect.signature(self.fn)
        except (TypeError, ValueError):
            return _ANYTHING

    @cached_property
    def keyword(self) -> str:
        """The name of the `**kwargs` parameter; empty if there is none."""
        kinds = {each.kind: name for name, each in self.signature.parameters.items()}
        return kinds.get(inspect.Parameter.VAR_KEYWORD, "")

    def location(self, argument: str = "def") -> Location | None:
        """Where the function's source names an argument; None if the source is not available."""
        named = inspect.unwrap(self.fn)
        try:
            file = inspect.getsourcefile(named)
            lines, first = _source(named)
        except (TypeError, OSError):
            return None
        # The source is not Python (index notation), so `getsourcelines` returns it from its first line, or fails.
        start: int = getattr(getattr(named, "__code__", None), "co_firstlineno", first)
        if start > first:
            lines, first = linecache.getlines(str(file))[start - 1 :], start
        word = re.compile(rf"(?<!\w){re.escape(argument)}(?!\w)")
        for number, line in enumerate(lines):
            if found := word.search(line):
                return Location(cell_or_file(str(file)), first + number, found.start() + 1, found.end() + 1, line.rstrip("\n"))
        return None

    def error(self, title: str, *helps: str, at: str = "def", label: str = "", notes: Iterable[str] = ()) -> Error:
        """The error where the function names an argument, of which `at` is the name, or a path in it."""
        return Error(title, location=self.location(at.split("/")[0]), label=label, notes=notes, helps=helps)

    def kind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Hashable, list[object]]:
        """What a trace depends on: the arguments' tree and types, the static values, redefined ops, JAX's settings.

        Also returns the leaves of the arguments.
        """
        bound, static = self.bind(args, kwargs)
        leaves, structure = tree.tree_flatten(tuple(bound.arguments.values()))
        avals = map(self.aval, leaves, leaf_names(bound.arguments))
        types = tuple((each.shape, each.dtype, each.weak_type) for each in avals)
        return (structure, tuple(bound.arguments), types, tuple(static.items()), definitions.replaced, trace_context()), leaves

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[inspect.BoundArguments, dict[str, object]]:
        """Binds a call's arguments to names, in the order of the parameters; static arguments are returned separately."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self.error(f"`{self.name}` is called with wrong arguments: {error}") from None
        for name, value in bound.arguments.items():
            try:
                tree.tree_structure(value)
            except (RecursionError, SystemError):
                title = f"argument `{name}` of `{self.name}` is nested too deeply for JAX"
                raise self.error(title, "pass a tree of fewer levels", at=name) from None
        if not self.static:
            return bound, {}
        # The default of a static argument is part of the trace, even if the argument is not passed.
        defaults = {name: self.signature.parameters[name].default for name in self.static if name in self.signature.parameters}
        static = {name: bound.arguments.pop(name, value) for name, value in defaults.items()}
        if self.keyword and self.keyword in bound.arguments:
            more = dict(bound.arguments[self.keyword])
            static |= {name: more.pop(name) for name in self.static if name in more}
            bound.arguments[self.keyword] = more
        for name, value in static.items():
            try:
                hash(value)
            except TypeError:
                title = f"static argument `{name}` of `{self.name}` must be hashable, got a {type(value).__name__}"
                help = "pass a tuple or a frozen dataclass, so that calls with equal values can share a trace"
                other = f"or close over it: functools.partial({self.name}, {name}=...)"
                raise self.error(title, help, other, at=name) from None
        return bound, static

    def call(self, values: Sequence[object], names: Sequence[str], static: Mapping[str, object]) -> object:
        """Calls the function with these values for the arguments `names`, and with the static arguments."""
        bound = passed(self.signature, {**dict(zip(names, values, strict=True)), **static})
        return self.fn(*bound.args, **bound.kwargs)

    def names(self, call: F, arguments: Iterable[str]) -> F:
        """Returns `call` with the name, location and arguments of the user's function, so that JAX's errors report these."""
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in arguments]
        vars(call).update(__wrapped__=self.fn, __signature__=inspect.Signature(parameters))
        return call

    def aval(self, leaf: object, path: str) -> ShapedArray:
        """The abstract value of a leaf. Raises Error if the leaf is not an array."""
        if isinstance(leaf, Ref):
            title = f"argument `{path}` of `{self.name}` is a mutable reference, expected an array"
            raise self.error(title, "pass the array that it holds, `ref[...]`, and return its new value", at=path)
        try:
            return abstract(leaf)
        except (TypeError, ValueError, OverflowError) as error:
            title = f"argument `{path}` of `{self.name}` must be an array"
            help = _APART if "/" in path else f"if it is meant to be a constant: static_argnames={path!r}"
            if integer(leaf) is not None and not isinstance(error, TypeError):
                help = "no integer of JAX is as large: pass a float, or set JAX_ENABLE_X64=1"
            elif str(getattr(leaf, "dtype", "")) == "object":
                help = "its elements are Python objects: make an array of numbers, or pass a list of arrays"
            elif is_dataclass(leaf) and not isinstance(leaf, type):
                help = f"if it holds arrays, make it a tree: jax.tree_util.register_dataclass({type(leaf).__name__}); {help}"
            raise self.error(title, help, at=path, label=f"got {leaf_text(leaf)}") from None


def leaf_names(arguments: Mapping[str, object]) -> list[str]:
    """The names of the leaves of arguments, in JAX's flattening order."""
    names: list[str] = []
    for name, value in arguments.items():
        leaves, _ = tree.tree_flatten_with_path(value)
        names += [join(escape(name), *path_parts(keys)) for keys, _ in leaves]
    return names


class Method:
    """What is called like a function, and can be a method of a class: the instance becomes its first argument."""

    signature: inspect.Signature
    bound: tuple[object, ...] = ()
    """The instance, if it is bound to one."""

    def bind_to(self, instance: object) -> Self:
        """The same, bound to an instance. It shares all that is cached."""
        method = copy.copy(self)
        method.bound = (instance,)
        return method

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature without the arguments that are bound."""
        return self.signature.replace(parameters=list(self.signature.parameters.values())[len(self.bound) :])


def abstract(leaf: object) -> ShapedArray:
    """The abstract value of an array. Raises TypeError, ValueError or OverflowError for anything else."""
    # JAX would show all of a text.
    return shaped_abstractify(None if isinstance(leaf, str | bytes | bytearray) else leaf)


def passed(signature: inspect.Signature, given: Mapping[str, object]) -> inspect.BoundArguments:
    """Binds a call that passes these arguments by name. Names that the signature lacks go to its `**kwargs`."""
    arguments = OrderedDict((name, value) for name, value in given.items() if name in signature.parameters)
    more = {name: value for name, value in given.items() if name not in arguments}
    for name, each in signature.parameters.items():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            arguments[name] = {**cast("Mapping[str, object]", arguments.get(name, {})), **more}
    return inspect.BoundArguments(signature, arguments)


def _static_names(given: object) -> tuple[str, ...]:
    """Checks the names of static arguments. Raises Error for a value that is not a string."""
    several = isinstance(given, list | tuple | set | frozenset)
    names = tuple(cast("Iterable[object]", given)) if several else (given,)
    if wrong := [name for name in names if not isinstance(name, str)]:
        helps = ['name the arguments: static_argnames="mode", or a list of names']
        raise Error(f"`static_argnames` must name arguments, got {shown(wrong[0])}", helps=helps)
    return tuple(str.__str__(cast(str, name)) for name in names)


def leaf_text(leaf: object) -> str:
    """Describes a leaf that is not an array: a function by its name, any other value by its `repr` and type."""
    if callable(leaf) and hasattr(leaf, "__name__"):
        return f"the function `{leaf.__name__}`"
    return f"{shown(leaf)}, a {type(leaf).__name__}"


def _source(named: Callable[..., object]) -> tuple[list[str], int]:
    """The source lines of a function, and the number of the first; none if Python cannot read them, as of index notation."""
    try:
        return inspect.getsourcelines(named)
    except TokenError:
        return [], 0


def names_at(fn: Callable[..., object], numbers: object, option: str) -> tuple[str, ...]:
    """The names of positional arguments, given by number; negative numbers count from the end. Raises Error for others."""
    several = isinstance(numbers, Iterable) and not isinstance(numbers, str)
    given = cast("Iterable[object]", numbers if several else (numbers,))
    function = UserFunction.of(fn)
    parameters = function.signature.parameters.values()
    positional = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    found: list[str] = []
    for number in given:
        if not isinstance(number, int) or isinstance(number, bool) or not -len(positional) <= number < len(positional):
            names = ", ".join(f"{at} `{name}`" for at, name in enumerate(positional)) or "no positional arguments"
            title = f"`{option}` takes numbers of positional arguments of `{function.name}`, got {shown(number)}"
            by_name = option.replace("argnums", "argnames")
            raise function.error(title, f"they are {names}", f"or name them: {by_name}=...")
        found.append(positional[number])
    return tuple(found)


def donated(function: UserFunction, given: Patterns) -> tuple[str, ...]:
    """The names of donated arguments. Raises Error for an unknown or a static one."""
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
