"""How a saved program is called: its signature, and the leaves of its arguments and results by their names.

The classes of the model's trees need not be there. An argument may be any tree whose leaves have the same names; results are
dicts, lists and tuples, in which the fields of other nodes are keys.

    ScaleByAdamState(count=i32[], mu={"w": f32[8]}, nu=...)   -->   {"count": i32[], "mu": {"w": f32[8]}, "nu": ...}
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias, cast

import numpy as np
from jax import Array
from jax.core import ShapedArray

from ....dialects.ground.errors import Error, did_you_mean
from ...inputs.arguments import abstract, leaf_names, leaf_text
from ...inputs.checks import shown
from ...inputs.names import Patterns, join, path_parts
from ...jax_private import jax, tree
from ...ops.prng_keys import aval_text, implementation, is_key, unwrap
from ...trace.trace import Traced, as_avals, converted

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Leaf: TypeAlias = tuple[str, ShapedArray]
"""The name and the type of a leaf."""


@dataclass(frozen=True, eq=False)
class SavedCall:
    """How a program is called. `tree` is the result, with the numbers of its leaves in place of arrays."""

    name: str
    signature: inspect.Signature
    static: Mapping[str, str]
    """The arguments that have the value with which the program was traced, each with the text of that value."""
    donated: Sequence[str]
    arguments: Sequence[Leaf]
    results: Sequence[Leaf]
    tree: Json
    consts: Sequence[np.ndarray] = ()
    returns: tuple[Sequence[int], object] | None = None
    """Which result is each leaf of the tree that a call returns, and its structure; None: that of `tree`."""
    orders: dict[Hashable, Sequence[int]] = field(default_factory=dict[Hashable, Sequence[int]])
    """By the structure of arguments, which of their leaves is each argument of the program."""

    @classmethod
    def of(cls, traced: Traced, donated: Collection[str]) -> SavedCall:
        """How a traced function is called."""
        parameters = traced.function.signature.parameters
        own = [each.replace(default=each.empty, annotation=each.empty) for each in parameters.values()]
        named = [each for each in own if each.name in traced.arguments]
        static = {name: shown(value) for name, value in traced.static.items()}
        arguments = [*zip(traced.arg_names, traced.in_avals, strict=False)]
        results = [*zip(traced.result_names, traced.out_avals, strict=True)]
        shape = _shape(tree.tree_unflatten(traced.out_tree, traced.out_avals), iter(range(len(results))))
        return cls(traced.name, inspect.Signature(named), static, [*donated], arguments, results, shape)

    def to_json(self) -> Json:
        """What `of_json` reads."""
        return {
            "name": self.name,
            "parameters": [[each.name, each.kind.name] for each in self.signature.parameters.values()],
            "static": dict(self.static),
            "donated": [*self.donated],
            "arguments": [_leaf_json(*leaf) for leaf in self.arguments],
            "results": [_leaf_json(*leaf) for leaf in self.results],
            "tree": self.tree,
        }

    @classmethod
    # Any: what JSON holds has no types.
    def of_json(cls, said: Any, consts: Sequence[np.ndarray]) -> SavedCall:
        """The inverse of `to_json`."""
        parameters = [inspect.Parameter(name, getattr(inspect.Parameter, kind)) for name, kind in said["parameters"]]
        arguments, results = ([_leaf(each) for each in said[side]] for side in ("arguments", "results"))
        signature = inspect.Signature(parameters)
        return cls(said["name"], signature, said["static"], said["donated"], arguments, results, said["tree"], consts)

    def donates(self, given: Patterns) -> Collection[str]:
        """The arguments that a call may overwrite. They were named when the program was saved."""
        del given
        return self.donated

    # --- arguments ---------------------------------------------------------------------------------------------------

    def flatten(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Array]:
        """The leaves of a call, in the order of the program. Raises Error for others than were saved."""
        try:
            bound = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            notes = [f"`{name}` has the value with which it was saved: {value}" for name, value in self.static.items()]
            title = f"`{self.name}` is called with wrong arguments: {error}"
            raise Error(title, notes=notes, helps=[f"it takes {self.name}{self.signature}"]) from None
        leaves, structure = tree.tree_flatten(tuple(bound.values()))
        key = structure, tuple(bound)
        if key not in self.orders:
            self.orders[key] = self._order(leaf_names(bound))
        found = [leaves[at] for at in self.orders[key]]
        for (name, aval), leaf in zip(self.arguments, found, strict=True):
            if getattr(leaf, "shape", None) != aval.shape or leaf.dtype != aval.dtype:
                self._check(name, aval, leaf)
        return list(map(unwrap, found))

    def _order(self, names: Sequence[str]) -> Sequence[int]:
        """Where each argument of the program is among the leaves of these names."""
        known, places = [name for name, _ in self.arguments], {name: at for at, name in enumerate(names)}
        missing, more = [name for name in known if name not in places], [name for name in names if name not in {*known}]
        if not missing and not more:
            return [places[name] for name in known]
        notes = [*(f"`{name}` is missing" for name in missing), *(f"`{name}` was not there" for name in more)]
        helps = [each for name in more[:1] for each in did_you_mean(name, missing)]
        title = f"`{self.name}` is called with other leaves than it was saved with"
        raise Error(title, notes=notes[:4], helps=[*helps, f"it takes {self.name}{self.signature}"])

    def _check(self, name: str, aval: ShapedArray, leaf: object) -> None:
        try:
            given = abstract(leaf)
        except (TypeError, ValueError, OverflowError):
            raise Error(f"argument `{name}` of `{self.name}` must be an array, got {leaf_text(leaf)}") from None
        if given.shape != aval.shape or given.dtype != aval.dtype:
            title = f"argument `{name}` of `{self.name}` is {aval_text(given)}, but the saved program takes {aval_text(aval)}"
            raise Error(title, helps=["pass an array like that, or save a plan of other shapes"])

    # --- results -----------------------------------------------------------------------------------------------------

    def unflatten(self, leaves: Sequence[Array]) -> object:
        """Rebuilds the result from the results of the program."""
        arrays, (order, structure) = as_avals(leaves, self.converted), self.returns or self.as_saved
        return tree.tree_unflatten(structure, [arrays[at] for at in order])

    @cached_property
    def converted(self) -> Mapping[int, ShapedArray]:
        """The results that are something else inside of the program."""
        return converted([aval for _, aval in self.results])

    @cached_property
    def as_saved(self) -> tuple[Sequence[int], object]:
        """The same as `returns`, of dicts, lists and tuples."""
        return tree.tree_flatten(_built(self.tree))

    def returning(self, like: object) -> SavedCall:
        """The same, with results that have the structure of `like`. Raises Error if that has other leaves."""
        found, structure = tree.tree_flatten_with_path(like)
        names = [join("result", *path_parts(keys)) for keys, _ in found]
        known = {name: at for at, (name, _) in enumerate(self.results)}
        if {*names} == {*known}:
            return replace(self, returns=([known[name] for name in names], structure))
        notes = [*(f"`{name}` is missing" for name in known if name not in names)]
        notes += [f"`{name}` is none of the program's" for name in names if name not in known]
        title = f"`like` has other leaves than the results of `{self.name}`"
        raise Error(title, notes=notes[:4], helps=["give what the function returned, or `jax.eval_shape` of it"])


def _shape(node: Any, numbers: Iterator[int]) -> Json:
    """A tree as JSON: the number of a leaf, None, or `[KIND, [KEY, NODE], ...]`."""
    if node is None:
        return None
    if isinstance(node, ShapedArray):
        return next(numbers)
    children, _ = tree.tree_flatten_with_path(node, is_leaf=partial(_is_below, node))
    kind = "tuple" if type(node) is tuple else "list" if type(node) is list else "dict"
    return [kind, *([_key(*keys), _shape(each, numbers)] for keys, each in children)]


def _is_below(node: object, each: object) -> bool:
    return each is not node


# Any: JAX's kinds of keys have no common type.
def _key(key: Any) -> Json:
    """A key of a dict as it is, if JSON has such keys; else as it is in names."""
    found = getattr(key, "key", None)
    return found if isinstance(found, str | int) else path_parts([key])[0]


def _built(node: Json) -> object:
    """The inverse of `_shape`, of the numbers."""
    if node is None or isinstance(node, int):
        return node
    kind, *children = cast("list[Any]", node)
    found = {key: _built(each) for key, each in children}
    return found if kind == "dict" else {"tuple": tuple, "list": list}[kind](found.values())


def _leaf_json(name: str, aval: ShapedArray) -> Json:
    key = implementation(aval) if is_key(aval) else None
    dtype = "key" if key else "float0" if aval.dtype == jax.dtypes.float0 else aval.dtype.name
    return {"name": name, "shape": [*aval.shape], "dtype": dtype, "key": key, "weak": bool(aval.weak_type)}


# Any: what JSON holds has no types.
def _leaf(said: Any) -> Leaf:
    if said["key"] is not None:
        # JAX makes the type of keys only with a key.
        dtype = jax.eval_shape(partial(jax.random.key, impl=said["key"]), 0).dtype
    else:
        dtype = jax.dtypes.float0 if said["dtype"] == "float0" else np.dtype(said["dtype"])
    return said["name"], ShapedArray(tuple(said["shape"]), dtype, weak_type=said["weak"])
