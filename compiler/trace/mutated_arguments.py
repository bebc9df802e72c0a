"""Finds arguments that a function changes in place, such as `flax.nnx` modules.

JAX calls a function on copies of its arguments: what it writes into them is lost unless it returns it. `jax.jit` says nothing.

    optimizer.update(net, grads); return loss                   -->   an error that names what is lost
    optimizer.update(net, grads); return net, optimizer, loss   -->   a program with all of it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from jax.extend.core import ClosedJaxpr
from xdsl.ir import Operation

from ...dialects.ground.errors import Error
from ..inputs.arguments import UserFunction
from ..inputs.names import escape, join, path_parts
from ..jax_private import PyTreeDef, dce_jaxpr, jax, tree
from .importer import imported
from .restructured_arguments import Held, equal, held, restructured

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call, and their leaves before it."""

    names: Sequence[str]
    values: Sequence[object]
    leaves: Sequence[object]
    structure: PyTreeDef
    held: Mapping[str, Held]
    attributes: Mapping[str, object]
    """The leaves that are attributes of objects, by name."""

    @classmethod
    def of(cls, names: Sequence[str], values: Sequence[object]) -> Given:
        leaves, structure = tree.tree_flatten(values)
        return cls(names, values, leaves, structure, held(names, values), _attributes(names, values))

    def changed(self, function: UserFunction, returned: object) -> dict[str, object]:
        """The attributes of objects that hold another array after the call, by name, with the new array.

        Dicts and lists are not included: a function that writes into those has its own copy, as every user of JAX knows. Raises
        Error if such an attribute is no longer an array, because it cannot be a result then, and if any other attribute has
        changed, unless the function returns its object.
        """
        now, structure = tree.tree_flatten(self.values)
        if not equal(structure, self.structure) and (
            others := restructured(self.held, held(self.names, self.values), returned)
        ):
            raise _lost(function, others)
        if len(now) == len(self.leaves) and all(a is b for a, b in zip(now, self.leaves, strict=True)):
            return {}
        found = _attributes(self.names, self.values)
        changed = {name: leaf for name, leaf in found.items() if leaf is not self.attributes.get(name)}
        if others := [name for name, leaf in changed.items() if not _is_array(leaf)]:
            raise _lost(function, others)
        return changed


def _attributes(names: Sequence[str], values: Sequence[object]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in zip(names, values, strict=True):
        for keys, leaf in tree.tree_flatten_with_path(value)[0]:
            if keys and isinstance(keys[-1], jax.tree_util.GetAttrKey):
                found[join(escape(name), *path_parts(keys))] = leaf
    return found


def _is_array(leaf: object) -> bool:
    try:
        jax.typeof(leaf)
    except TypeError:
        return False
    return True


def kept(function: UserFunction, closed: ClosedJaxpr, names: Sequence[str], changed: Sequence[str]) -> ClosedJaxpr:
    """The program without its last results, which are the changed leaves. Raises Error if one is not among the other results.

    `nnx.jit` and `nnx.remat` put each leaf back as it was: that is no change. `names` are those of the arguments.
    """
    if not changed:
        return closed
    block, count = imported(closed).frame.block, len(closed.jaxpr.outvars) - len(changed)
    own = dict(zip(names, block.args, strict=False))
    results = cast(Operation, block.last_op).operands
    pairs = zip(changed, results[count:], strict=True)
    if lost := [name for name, value in pairs if value not in set(results[:count]) and value is not own.get(name)]:
        raise _lost(function, lost)
    jaxpr, _ = dce_jaxpr(closed.jaxpr, [True] * count + [False] * len(changed), True)
    return ClosedJaxpr(jaxpr, closed.consts)


def _lost(function: UserFunction, names: Sequence[str]) -> Error:
    roots = list(dict.fromkeys(name.split("/")[0] for name in names))
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    together = ", ".join(roots)
    return function.error(
        f"`{function.name}` changes {shown}{more} in place, and does not return what it changes",
        f"return what is changed, `return {together}, ...`, and go on with it: `{together}, ... = {function.name}(...)`",
        "or split a `flax.nnx` module: `graph, state = nnx.split(module)`, then pass `state`; inside, "
        "`module = nnx.merge(graph, state)` and `return nnx.state(module), ...`; outside, `nnx.update(module, state)`",
        at=roots[0],
        label="a copy at each call, as in `jax.jit`: the change would be lost",
    )


def captured(function: UserFunction, error: Exception) -> Error | None:
    """The error for a module that a function closes over and changes. Flax refuses the change."""
    if type(error).__name__ != "TraceContextError":
        return None
    said = str(error).split(" (https://")[0]
    title = f"`{function.name}` changes a `flax.nnx` module that it closes over"
    help = "pass the module as an argument, and return it: `return module, ...`"
    return function.error(title, help, notes=[f"Flax says: {said}"])
