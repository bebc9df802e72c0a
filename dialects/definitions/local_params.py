"""The parameters that a local op gets from its local types: `broadcast_in_dim`'s `shape`, `gather`'s `slice_sizes`."""

from collections.abc import Sequence

import numpy as np

from ..ground.errors import Error
from ..params import Literal, ParamsAttr, Record
from .grounding import ground
from .operators import ARITHMETIC
from .syntax_tree import Apply, Definition, Expr, Number, Param, Shape, Size, Value, Var, nodes


def restore(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Value]) -> dict[str, Literal]:
    """Evaluates the `extents` clauses of a definition for types, which may be local."""
    if not definition.extents:
        return {}
    bound = definition.with_arity(len(ins), len(outs))
    sized = any(isinstance(node, Size) for _, expr in definition.extents for node in nodes(expr))
    results = {each.name: outs[-1 - at] for each in bound.results for at in bound.positions(each.name)[:1]}
    form = ground(bound, params, ins, [shape for _, shape in outs]) if sized else None

    def size(variable: Var) -> Literal:
        assert form is not None
        if variable.many:
            known = form.groups.get((variable.name, 0), ())
            if form.numbers is None:
                return known
            # The window's extent along every dim of the array: along batch dims it is 1.
            sizes = dict(zip(form.numbers.dims[bound.operands[0].name, "v"], known, strict=False))
            return tuple(sizes.get(dim, 1) for dim in range(len(ins[0])))
        copies = [form.groups.get((variable.name, copy), (1,))[0] for copy in range(len(form.equations))]
        return tuple(copies) if any(formal.variadic for formal in definition.results) else copies[0]

    def value(expr: Expr) -> Literal:
        match expr:
            case Number(number):
                return number
            case Size(variable):
                return size(variable)
            case Param(name, ()) if name in results:
                return results[name][1]
            case Apply("dtype", (Param(name, ()),)) if name in results:
                return Record("dtype", (("name", results[name][0]),))
            case Param():
                return expr.value(params)
            case Apply(function, (left, right)) if function in _FUNCTIONS:
                return _arithmetic(function, value(left), value(right))
            case _:
                raise Error(f"`{definition.name}`: `extents` cannot read this")

    return {name: value(expr) for name, expr in definition.extents}


_FUNCTIONS = {**{name: ARITHMETIC[name].function for name in ("add", "sub", "mul")}, "maximum": np.maximum}


def _arithmetic(function: str, left: Literal, right: Literal) -> Literal:
    """Combines the numbers elementwise; an absent parameter (`strides=None`) counts as 1."""
    found = _FUNCTIONS[function](*(np.asarray(1 if each is None else each, np.int64) for each in (left, right)))
    return tuple(found.tolist()) if found.ndim else found.item()
