"""What the IR is: values that lie on a mesh, the ops on them, and what the ops mean.

Each part imports only those below it:

    reference                             programs and ops in NumPy: the oracle of the tests
    plan                                  the attributes of claims and decisions
    flow, spmd, array, lax                the dialects; `lax_verify` and `regions` are what their verifiers check
      collective_arrays                   what collectives do to the local arrays of a group of devices
      layouts, types, op_text, module_op  how a value lies on the mesh, and how types, ops and modules are written
    definitions                           the meaning of each named op, in index notation; tilings follow from it
    mesh, chips, program_text, params     devices, their axes and what they are; what reads a program's text; parameters of ops
    ranges                                the algebra behind every type
    grammar                               the grammars of all texts
    ground                                errors, English, names, dtypes, monoids: what everything else uses

    lax    the named ops, one class for each definition             %2 = lax.dot_general %0, %1 {...} : ...
    array  placed values: builders, slicers, redistributions        %3 = array.slice %2 to f32[data*64, 8] : ...
    spmd   what one device does, every collective explicit          %4 = spmd.all_reduce add %3 over (model) : ...
    plan   claims and decisions, as attributes of ops               ... attributes {plan.place = [#plan.place<0 data*64>]}
    flow   the graph of kernels                                     %5 = flow.kernel @step_0(%4) : ...

A program is traced as `lax` on whole values, placed by `array`, lowered to `spmd`, and arranged by `flow`. The other two rooms
import this one; it imports neither of them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.ir import Dialect


def dialects() -> "dict[str, Dialect]":
    """Our dialects by name, imported here so that a mesh or an error costs no xDSL."""
    from .array import ARRAY
    from .flow import FLOW
    from .lax import lax
    from .plan import PLAN
    from .spmd import SPMD

    return {each.name: each for each in (ARRAY, FLOW, lax(), PLAN, SPMD)}


def context() -> "Context":
    """An xDSL context with our dialects beside `builtin` and `func`: what a parser of our programs needs."""
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func

    from .lax import defined

    made = Context()
    for each in (Builtin, Func, *dialects().values()):
        made.load_dialect(each)
    for op in defined():
        made.load_op(op)
    return made
