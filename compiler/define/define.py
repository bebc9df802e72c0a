"""`pt.define`: a line of index notation turns any JAX function, or a primitive without a definition, into a partitionable op.

    rms_norm(x, w)   out[b.., d:] = @(x[b.., d:], w[d:])

`@` is the function itself; the indices on both sides of `=` say how it can be partitioned. That line determines the tilings,
the device-local op and the communication, as for every op of `definitions.def`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, overload

from jax import Array
from jax.extend.core import Primitive

from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Definition, Formal, Param, titled
from ...dialects.ground.errors import Error, did_you_mean
from ...dialects.ground.validation import accepted, flag_of, refused
from ..inputs.arguments import abstract, passed
from ..inputs.checks import is_deep, shown
from ..inputs.string_literals import Written
from ..jax_private import Tracer, jax, jnp, tree
from ..ops.params import OP_NAMES, op_name
from ..ops.primitives import is_primitive, name_of, op_names_of_jax
from ..ops.prng_keys import is_key
from .user_op import Op, added, definition_of_text, make_op

R = TypeVar("R")
Example = Sequence[object] | None
"""Arrays or `jax.ShapeDtypeStruct`s like the operands; None if no example is given."""

_OWNERS: dict[str, Owner] = {}
"""Name of an op -> its owner, who can redefine it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of an op: a function, by its qualified name, in the module or the file that calls `pt.define`.

    A notebook cell that runs again has another file; a file that is imported under two names has two modules.
    """

    module: str
    file: str
    function: str

    def names(self, name: str) -> Iterator[str]:
        """Candidate names for the op, of which the first free one is used: `softmax`, `net.softmax`, `lib.net.softmax`."""
        parts = [part for part in f"{self.module}.{self.function}".split(".") if part and part[0] != "<"]
        parts = [re.sub(r"\W", "_", part, flags=re.ASCII) for part in parts]
        parts = parts[:-1] if parts[-1:] == [name] else parts
        return (".".join([*parts[len(parts) - count :], name]) for count in range(len(parts) + 1))

    def is_same(self, other: Owner) -> bool:
        """Whether both are the same function, possibly an older and a newer version."""
        return self.function == other.function and (self.module == other.module or self.file == other.file != "<definition>")


class Defined(Generic[R]):
    """A function that is one op of a jaxpr: called, differentiated and mapped like the function that it wraps."""

    def __init__(self, function: Callable[..., R], written: Written, module: str, checked: bool) -> None:
        self.function = function
        self.written = written
        self.definition = definition = definition_of_text(written)
        self.signature = _signature(function, definition, written)
        _check_bound(definition, self.signature, written)
        self.formals = definition.operands
        own = Owner(module, written.file, str(getattr(function, "__qualname__", "")))
        self.op = make_op(written, self._run, checked, _claimed(definition.name, written, own))
        functools.update_wrapper(self, function, updated=())
        self.__signature__ = self.signature

    def __repr__(self) -> str:
        return f"<{self.written.text.strip()}>"

    # Any: the attributes of the wrapped function.
    def __getattr__(self, name: str) -> Any:
        # `defvjp` and `defjvp` of the wrapped function can be called after the decorator.
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)

    def __call__(self, *args: object, **kwargs: object) -> R:
        """Calls the function and returns its results; in a trace, as one equation."""
        arrays, params = self._split(args, kwargs)
        return cast(R, self.op.call(arrays, params))

    def check(self, *args: object, **kwargs: object) -> None:
        """Try the definition now, on arrays or `jax.ShapeDtypeStruct`s like these. Raises Error if it is wrong."""
        arrays, params = self._split(args, kwargs)
        self.op.try_on(arrays, params)

    def _try_example(self, example: Sequence[object]) -> None:
        """Tries the definition on the arrays of `example`. Raises Error if it is wrong, or if they are not its operands."""
        arrays, params = accepted("example", lambda _, given: self._split(given, {}), example)
        self.op.try_on(arrays, params)

    def _split(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[list[Array], dict[str, object]]:
        """The operands in the definition's order, and the static parameters. Raises Error for other values."""
        title = self.op.title
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            help = f"its parameters are {self.signature}"
            self.written.fail(title, f"`{title}` is called with wrong arguments: {error}", help)
        bound.apply_defaults()
        groups = {formal.name: self._group(formal, bound.arguments.pop(formal.name)) for formal in self.formals}
        counts = {formal.name: len(groups[formal.name]) for formal in self.formals if formal.variadic}
        if len(set(counts.values())) > 1:
            given = ", ".join(f"{count} in `{name}`" for name, count in counts.items())
            self.written.fail(title, f"`{title}` takes the same number of arrays in each group, got {given}")
        arrays = [each for group in groups.values() for each in group]
        params: dict[str, object] = {}
        for name, value in bound.arguments.items():
            kind = self.signature.parameters[name].kind
            params |= value if kind is inspect.Parameter.VAR_KEYWORD else {name: value}
        for name, value in params.items():
            self._check_static(name, value)
        return arrays, params

    def _group(self, formal: Formal, value: object) -> list[Array]:
        """The arrays that are passed for an operand: one, or several for a variadic operand."""
        if not formal.variadic:
            return [self._array(formal.name, value)]
        if not (isinstance(value, list | tuple) or hasattr(type(value), "dtype")):
            title = f"operand `{formal.name}` of `{self.op.title}` must be a tuple of arrays, got {shown(value)}"
            self.written.fail(formal.name, title, f"`{formal.name}*` stands for any number of arrays: give a tuple")
        return [self._array(formal.name, each) for each in cast("Iterable[object]", value)]

    def _array(self, name: str, value: object) -> Array:
        if isinstance(value, jax.ShapeDtypeStruct):
            return cast(Array, value)
        try:
            if value is None or is_deep(value):
                raise TypeError
            for leaf in tree.tree_leaves(value):
                abstract(leaf)
            found = value if isinstance(value, jax.Array) else jnp.asarray(value)
        except (TypeError, ValueError, OverflowError):
            title = f"operand `{name}` of `{self.op.title}` must be an array, got {shown(value)}"
            self.written.fail(name, title, f"if `{name}` is not an array, leave it out of the definition")
        if is_key(found):
            title = f"operand `{name}` of `{self.op.title}` is an array of keys"
            self.written.fail(name, title, "pass `jax.random.key_data(key)`, and wrap it inside")
        return cast(Array, found)

    def _check_static(self, name: str, value: object) -> None:
        title = self.op.title
        if isinstance(value, jax.Array | Tracer) or (hasattr(value, "__array__") and getattr(value, "shape", ()) != ()):
            operands = ", ".join([*(formal.name for formal in self.formals), name])
            help = f"write `{title}({operands})`, and how it is read: `{name}[i..]`"
            self.written.fail(title, f"`{name}` is an array, but the definition of `{title}` does not name it", help)
        try:
            hash(value)
        except TypeError:
            title = f"parameter `{name}` of `{title}` must be hashable, got a {type(value).__name__}"
            self.written.fail(name, title, "pass a tuple or a frozen dataclass")

    def _run(self, *arrays: Array, **params: object) -> R:
        """Calls the function itself with operands in the definition's order."""
        bound = self.definition.with_arity(len(arrays), len(self.definition.results))
        parts = {each.name: [arrays[at] for at in bound.positions(each.name)] for each in self.formals}
        given = {each.name: tuple(parts[each.name]) if each.variadic else parts[each.name][0] for each in self.formals}
        call = passed(self.signature, {**params, **given})
        return self.function(*call.args, **call.kwargs)


def _signature(function: Callable[..., object], definition: Definition, written: Written) -> inspect.Signature:
    """The function's parameters, which include all operands; those of the text if Python cannot inspect the function."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = inspect.Signature()
    kinds = {name: each.kind for name, each in signature.parameters.items()}
    known = [name for name, kind in kinds.items() if kind is not inspect.Parameter.VAR_KEYWORD]
    unnamed = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    plain = [name for name, kind in kinds.items() if kind not in (*unnamed, inspect.Parameter.KEYWORD_ONLY)]
    if not plain and not any(formal.name in known for formal in definition.operands):
        one, several = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
        own = [inspect.Parameter(each.name, several if each.variadic else one) for each in definition.operands]
        more = [each for each in signature.parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
        return inspect.Signature([*own, *more])
    for formal in definition.operands:
        if formal.name not in known:
            title = f"`{formal.name}` is not a parameter of `{getattr(function, '__name__', shown(function))}`"
            helps = did_you_mean(formal.name, known, f"its parameters are {signature}")
            raise Error(title, location=written.find(formal.name, head=True), helps=helps)
    return signature


def _check_bound(definition: Definition, signature: inspect.Signature, written: Written) -> None:
    """Raises Error for an index that is read, but appears in no result and under no fold."""
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values()):
        return
    for each in definition.reads():
        for term in each.dims:
            if isinstance(term, Param) and not term.steps and term.name not in signature.parameters:
                title = f"`{term.name}` is an index of `{each.array}`, but appears in no result"
                fold = f"or say how its parts are combined: `sum({term.name}) @(...)`"
                written.fail(term.name, title, f"write `{term.name}:` for a dim that cannot be partitioned", fold)


def _claimed(name: str, written: Written, owner: Owner) -> str:
    """Claims a name for an owner's op: the name in its text, with as much of the owner's name in front as makes it unique.

    An owner that reuses a name replaces its earlier op. Raises Error for the name of an op of JAX or Partita.
    """
    if name in [*definitions, *op_names_of_jax()]:
        whose = "Partita defines it" if name in definitions else "a primitive has that name"
        written.fail(name, f"an op `{name}` already exists: {whose}", "choose another name before the parentheses")
    found = next((each for each in owner.names(name) if _is_free(each, owner)), name)
    other = _OWNERS.get(found)
    definitions.replaced += other is not None and owner.is_same(other)
    _OWNERS[found] = owner
    return found


def _is_free(name: str, owner: Owner) -> bool:
    """Whether no other owner has the name. A refused definition does not keep its name."""
    other = _OWNERS.get(name)
    if other is None:
        return name not in definitions and not is_primitive(name)
    return owner.is_same(other) or name not in definitions


@overload
def define(text: str, function: Callable[..., R], *, example: Example = None, check: bool = True) -> Defined[R]: ...
@overload
def define(text: str, *, example: Example = None, check: bool = True) -> Callable[[Callable[..., R]], Defined[R]]: ...
@overload
def define(text: str, *, primitive: Primitive, example: Example = None, check: bool = True) -> Primitive: ...
def define(
    text: str,
    function: Callable[..., R] | None = None,
    *,
    primitive: Primitive | None = None,
    example: Example = None,
    check: bool = True,
) -> Defined[R] | Callable[[Callable[..., R]], Defined[R]] | Primitive:
    """Define an op by a function and a line of index notation, so that it can be partitioned like any other op.

    Use it as a decorator, or pass the function. JAX must be able to trace the function; it can be a `jax.custom_vjp`, which
    keeps its rule, a Pallas kernel, a `jax.ffi` call or a callback. Parameters that the text does not name are static. With
    `primitive=`, the text defines an existing primitive that has no definition.

    Before a program can contain the op, at the first plan for each kind of call, the function runs unpartitioned and in
    blocks on random arrays. An Error shows the first element that differs. `example`, arrays or `jax.ShapeDtypeStruct`s,
    runs this trial immediately; `check=False` skips it. Defining a function again replaces its op. Ops of the same name in
    two modules, or of two functions, are different ops, `softmax` and `net.softmax`.

        @pt.define("rms_norm(x, w)   out[b.., d:] = @(x[b.., d:], w[d:])")
        def rms_norm(x, w): ...

        x: f32[data*64, 256], w: f32[256]   -->   rms_norm on f32[64, 256], no collective
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        help = 'write `@pt.define("name(x)  out[i..] = @(x[i..])")`'
        raise refused("text", "the definition, a string", text, help)
    flag_of("check", check)
    if not isinstance(example, list | tuple | None):
        raise refused("example", "a list of arrays, or of their shapes", example, "give one for each operand: example=(x, w)")
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    written, module = Written.of(text, caller), str(caller.f_globals.get("__name__", "")) if caller else ""
    if primitive is not None and not isinstance(primitive, Primitive):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused("primitive", "a primitive of JAX", primitive, "define a function instead: @pt.define(text)")
    if primitive is not None:
        return _define_primitive(written, module, primitive, example, check)
    if function is None:
        return functools.partial(_define_function, written, module, example=example, check=check)
    return _define_function(written, module, function, example, check)


def _define_primitive(written: Written, module: str, primitive: Primitive, example: Example, check: bool) -> Primitive:
    definition = definition_of_text(written)
    own = name_of(primitive)
    name = titled(op_name(own))
    # A file that is imported twice creates its primitives twice.
    owner = Owner(module, written.file, primitive.name)
    if name in definitions and name not in definitions.added:
        title = f"primitive `{primitive.name}` already has a definition"
        written.fail(definition.name, title, f"`partita rules {name}` shows it")
    if definition.name != name:
        name = _claimed(definition.name, written, owner)
    else:
        definitions.replaced += name in _OWNERS
        _OWNERS[name] = owner
    op = added(written, cast(Any, primitive).bind, primitive, check, name)
    OP_NAMES[own] = op.name
    _try(op, op.try_on, example)
    return primitive


def _define_function(written: Written, module: str, function: Callable[..., R], example: Example, check: bool) -> Defined[R]:
    if not callable(function):
        raise refused("function", "a function", function, "`pt.define(text)` decorates a function")
    defined = Defined(function, written, module, check)
    _try(defined.op, defined._try_example, example)  # pyright: ignore[reportPrivateUsage]
    return defined


def _try(op: Op, check: Callable[[Sequence[object]], None], example: Example) -> None:
    """Tries a definition on its example, if there is one; removes the op if the definition is refused."""
    try:
        if example is not None:
            check(example)
    except Error:
        del definitions.added[op.name]
        raise
