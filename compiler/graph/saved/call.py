"""How a saved program is called: its signature, and the leaves of its arguments and results by their names.

The classes of the model's trees need not be there. An argument may be any tree whose leaves have the same names; results are
dicts, lists and tuples, in which the fields of other nodes are keys.

    ScaleByAdamState(count=i32[], mu={"w": f32[8]}, nu=...)   -->   {"count": i32[], "mu": {"w": f32[8]}, "nu": ...}
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias, cast

import numpy as np
from jax import Array
from jax.core import ShapedArray
from xdsl.ir import Operation

from ....dialects.ground.errors import Error, did_you_mean
from ....dialects.op_text import array_types
from ...inputs.arguments import abstract, leaf_names, leaf_text
from ...inputs.checks import shown
from ...inputs.names import Patterns, as_patterns, join, path_parts
from ...jax_private import jax, tree
from ...ops.prng_keys import aval_text, implementation, is_key, is_void, physical, unwrap
from ...trace.trace import Traced, as_avals, converted
from ..module import GraphModule

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
        for side in (arguments, results):
            twice = [name for name, count in Counter(name for name, _ in side).items() if count > 1]
            if twice:
                helps = ['name the keys of the dict otherwise: 1 and "1" have one name']
                raise Error(
                    f"`{traced.name}` has two leaves with the name `{twice[0]}`, by which a saved program knows them",
                    helps=helps,
                )
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

    # Any: what JSON holds has no types.
    @classmethod
    def of_json(cls, said: Any, consts: Sequence[np.ndarray]) -> SavedCall:
        """The inverse of `to_json`."""
        parameters = [inspect.Parameter(name, getattr(inspect.Parameter, kind)) for name, kind in said["parameters"]]
        arguments, results = ([_leaf(each) for each in said[side]] for side in ("arguments", "results"))
        signature = inspect.Signature(parameters)
        return cls(said["name"], signature, said["static"], said["donated"], arguments, results, said["tree"], consts)

    def donates(self, given: Patterns) -> Collection[str]:
        """The arguments that a call may overwrite: those that the file names."""
        return as_patterns(given)

    @property
    def takes(self) -> Sequence[Leaf]:
        return self.arguments

    def takes_as_given(self, args: Sequence[object]) -> bool:
        """Whether the leaves of these arguments are what the program takes, in its order."""
        names = leaf_names(self.signature.bind(*args).arguments)
        own = [name for name, aval in self.arguments if not is_key(aval) and not is_void(aval)]
        return names == own

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
        arrays = as_avals(leaves, self.converted)
        if self.returns is None:
            return _built(self.tree, arrays)
        order, structure = self.returns
        return tree.tree_unflatten(structure, [arrays[at] for at in order])

    @cached_property
    def converted(self) -> Mapping[int, ShapedArray]:
        """The results that are something else inside of the program."""
        return converted([aval for _, aval in self.results])

    def returning(self, like: object) -> SavedCall:
        """The same, with results that have the structure of `like`. Raises Error if that has other leaves."""
        try:
            found, structure = tree.tree_flatten_with_path(like)
        except (RecursionError, SystemError):
            raise Error("`like` cannot be nested so deeply", helps=["give what the function returned"]) from None
        names = [join("result", *path_parts(keys)) for keys, _ in found]
        known = {name: at for at, (name, _) in enumerate(self.results)}
        if {*names} == {*known}:
            return replace(self, returns=([known[name] for name in names], structure))
        notes = [*(f"`{name}` is missing" for name in known if name not in names)]
        notes += [f"`{name}` is none of the program's" for name in names if name not in known]
        title = f"`like` must have the leaves of the results of `{self.name}`"
        raise Error(title, notes=notes[:4], helps=["give what the function returned, or `jax.eval_shape` of it"])


def _shape(node: object, numbers: Iterator[int]) -> Json:
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


def _key(key: object) -> Json:
    """A key of a dict as it is, if JSON has such keys; else as it is in names."""
    found = getattr(key, "key", None)
    return found if isinstance(found, str | int) else path_parts([key])[0]


def _built(node: Json, leaves: Sequence[object]) -> object:
    """The inverse of `_shape`."""
    if node is None or isinstance(node, int):
        return None if node is None else leaves[node]
    kind, *children = cast("list[Any]", node)
    found = {key: _built(each, leaves) for key, each in children}
    return found if kind == "dict" else {"tuple": tuple, "list": list}[kind](found.values())


def _numbers(node: Json) -> Iterator[int]:
    """The leaves of a tree that is JSON."""
    if isinstance(node, int):
        yield node
    elif node is not None:
        for _, each in cast("list[Any]", node)[1:]:
            yield from _numbers(each)


def check_ends(call: SavedCall, graph: GraphModule) -> None:
    """Raises ValueError unless a call has the arguments and results of the graph."""
    types = array_types((*graph.op.body.block.args, *cast(Operation, graph.op.body.block.last_op).operands))
    consts = [(f"const/{at}", each.shape, each.dtype.name) for at, each in enumerate(call.consts)]
    avals = ((name, physical(aval)) for name, aval in call.arguments), ((name, physical(aval)) for name, aval in call.results)
    ins, outs = ([(name, each.shape, str(each.dtype)) for name, each in side] for side in avals)
    names = (*graph.arguments, *graph.results)
    own = [(name, type.layout.global_shape, type.dtype) for name, type in zip(names, types, strict=True)]
    if [*ins, *consts, *outs] != own:
        raise ValueError("its arguments and results are not those of the graph")
    if sorted(_numbers(call.tree)) != [*range(len(outs))]:
        raise ValueError("the tree of its result has other leaves than there are results")
    if not {*call.donated} <= {*call.signature.parameters}:
        raise ValueError("it donates what is no argument")


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
        if dtype != jax.dtypes.float0 and jax.dtypes.canonicalize_dtype(dtype) != dtype:
            title = f"the program was saved with numbers of 64 bits: `{said['name']}` is {dtype}"
            raise Error(title, helps=["set JAX_ENABLE_X64=1, or save it without"])
    return said["name"], ShapedArray(tuple(said["shape"]), dtype, weak_type=said["weak"])
