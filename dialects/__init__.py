"""The IR: values placed on a mesh, the ops on them, and the meaning of the ops.

    errors, mesh, dtypes          the vocabulary of all other files
    monoids                       the one table of folds: names, units, what each may do across devices
    ranges, layouts               how many, and where: the algebra of every type
    types, params                 attributes: `f32[data*128, 256]{+model}`, `{axes = (0,)}`
    definitions.def, definition   the meaning of each named op, in index notation; everything else is derived from it
      definition_text, _tree      its text, by the grammar that programs in index notation share (`grammar`)
      front_ends, places          gathers, pools, ragged: dimension numbers that a line cannot say
      sites, indices, ground      written out for operands of given shapes (`grounded`): each dim an index, each index an extent
    instance, tilings             which indices can be placed, and what that asks of the local op
      extents, rows               the parameters that follow from local types; windows as rows of one dim
    evaluate, interpret           an op's values, and a program's, in NumPy: the oracle of the tests
      scalars, scans, whole_dims, linalg, user_functions     what is computed at one place, along a dim, of whole dims

    lax      the named ops, one class for each definition             %2 = lax.dot_general %0, %1 {...} : ...
    array    placed values: builders, slicers, redistributions        %3 = array.slice %2 to f32[data*64, 8] : ...
    spmd     what one device does, every collective explicit          %4 = spmd.all_reduce add %3 over (model) : ...
    flow     the graph of kernels                                     %5 = flow.kernel @step_0(%4) : ...

A program passes through these dialects in order: traced as `lax` on whole values, placed by `array`, lowered to `spmd`,
arranged by `flow`. The other two rooms import this one; it imports neither of them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.context import Context

DIALECTS = ("array", "flow", "lax", "spmd")


def context() -> "Context":
    """An xDSL context with our dialects, `builtin` and `func`, as a parser of our programs needs it."""
    # Imported here, so that a mesh or an error costs no xDSL.
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func

    from .array import ARRAY
    from .flow import FLOW
    from .lax import defined, lax
    from .spmd import SPMD

    made = Context()
    for dialect in (Builtin, Func, ARRAY, FLOW, lax(), SPMD):
        made.load_dialect(dialect)
    for op in defined():
        made.load_op(op)
    return made
