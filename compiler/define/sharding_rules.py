"""A `jax.experimental.custom_partitioning` call with a sharding rule: the rule is a definition.

Its factors are indices. A factor of the results can be partitioned. A factor of only the operands is summed over, if the rule
declares it a reduction. A factor that the rule needs replicated or permuted is not partitioned. A block runs the function
that the author's `partition` returns for arrays of these shapes on one device.

    "... i k, k j -> ... i j", reduction_factors=("k",)   -->
    custom_partitioning(x0, x1)   y0[f0.., f1, f3] = sum(f2) @(x0[f0.., f1, f2], x1[f2, f3])
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, JaxprEqn, jaxpr_as_fun
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...dialects.ground.errors import Error
from ..jax_private import Factors, ShardingRule, jax, tree
from ..ops.params import ArrayLike
from ..ops.prng_keys import is_key

_BATCHING = "\N{HORIZONTAL ELLIPSIS}"
"""The prefix that JAX gives to the name of a factor that is any number of dims."""


def text(eqn: JaxprEqn) -> str:
    """The definition that follows from the rule of a call. Raises Error with the reason for a call without one."""
    rule = eqn.params["sharding_rule"]
    if rule is None or callable(rule):
        raise Error("it has no sharding rule")
    if any(is_key(atom.aval) for atom in (*eqn.invars, *eqn.outvars)):
        raise Error("its operands are keys")
    ins, outs = rule.operand_mappings, rule.result_mappings
    names = {factor: f"f{number}" for number, factor in enumerate(dict.fromkeys(_factors((*ins, *outs))))}
    blocks, whole = _blocks(rule), _unplaceable(rule)

    def term(dim: Factors) -> str:
        if isinstance(dim, str):
            return f"{names[dim]}{'..' if dim.startswith(_BATCHING) else ''}{':' if dim in whole else ''}"
        return "d:" if whole.intersection(dim) else f"({' '.join(names[factor] for factor in dim)})"

    def side(letter: str, mappings: Sequence[Sequence[Factors]]) -> str:
        return ", ".join(f"{letter}{n}[{', '.join(map(term, each))}]" for n, each in enumerate(mappings))

    summed = ", ".join(names[factor] for factor in rule.reduction_factors if factor not in whole)
    sizes = ", ".join(f"{names[factor]} = {size}" for factor, size in blocks.items() if factor not in whole)
    head = f"custom_partitioning({', '.join(f'x{n}' for n in range(len(ins)))})"
    body = f"{f'sum({summed}) ' if summed else ''}@({side('x', ins)}){f'   size {sizes}' if sizes else ''}"
    return f"{head}   {side('y', outs)} = {body}"


def _blocks(rule: ShardingRule) -> dict[str, int]:
    """The factors whose elements stay together -> their sizes: factors with a size that are not the first of a dim."""
    first = {dim[0] for dim in _product_dims(rule)}
    return {factor: size for factor, size in rule.factor_sizes.items() if factor not in first}


def _unplaceable(rule: ShardingRule) -> set[str]:
    """The factors that cannot be placed, except blocks."""
    read, made = set(_factors(rule.operand_mappings)), set(_factors(rule.result_mappings))
    # On a block, the length of an index follows only from an operand.
    alone = (made - read) | (read - made - set(rule.reduction_factors))
    found: set[str] = (alone | {*rule.need_replication_factors, *rule.permutation_factors}) - set(_blocks(rule))
    # A factor that shares a dim with an unplaceable factor cannot be placed either.
    while more := set[str]().union(*(dim for dim in _product_dims(rule) if found.intersection(dim))) - found:
        found |= more
    return found


def _product_dims(rule: ShardingRule) -> list[tuple[str, ...]]:
    """The dims that are products of factors."""
    return [dim for each in (*rule.operand_mappings, *rule.result_mappings) for dim in each if not isinstance(dim, str)]


def block(params: Mapping[str, object], inputs: Sequence[Array], outs: Sequence[ArrayLike]) -> list[Array]:
    """Runs a call on blocks of its operands; on global arrays, the function itself."""
    call = cast(ClosedJaxpr, params["call"])
    if [tuple(np.shape(each)) for each in inputs] == [aval.shape for aval in call.in_avals]:
        return list(cast(Any, jaxpr_as_fun)(call)(*inputs))
    mesh = Mesh(np.array(jax.local_devices()[:1]), ("device",))

    def structs(side: str, types: Sequence[ArrayLike]) -> object:
        here = [NamedSharding(mesh, PartitionSpec(*[None] * len(shape))) for _, shape in types]
        each = [jax.ShapeDtypeStruct(shape, dtype, sharding=at) for (dtype, shape), at in zip(types, here, strict=True)]
        return tree.tree_unflatten(params[side], each)

    ins = structs("in_tree", [(each.dtype.name, tuple(np.shape(each))) for each in inputs])
    partition, static = cast("Callable[..., Any]", params["partition"]), cast("Sequence[object]", params["static_args"])
    _, function, _, _ = partition(*static, mesh, ins, structs("out_tree", outs))
    return tree.tree_leaves(function(*tree.tree_unflatten(params["in_tree"], inputs)))


def _factors(mappings: Sequence[Sequence[Factors]]) -> Iterator[str]:
    for mapping in mappings:
        for dim in mapping:
            yield from (dim,) if isinstance(dim, str) else dim
