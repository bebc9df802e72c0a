"""Names for the ranges of a program that its author did not name.

train_step(params, opt, batch): dim 0 of batch/tokens, of batch/labels and of the activations   -->   `batch`
its dim 1                                                                                       -->   `length`
dim 1 of params/w1 and dim 0 of params/w2                                                       -->   `params/w1.1`
"""

from collections.abc import Collection, Mapping

from ...rewrites.program.dim_classes import Classes
from ...rewrites.program.program import Program

BATCH, LENGTH = "batch", "length"
FEWEST = 2
"""The fewest arguments that the results of a training step replace."""


def range_names(
    program: Program, classes: Classes, arguments: Mapping[str, int], replaced: Collection[str], keys: Collection[int]
) -> dict[str, int]:
    """Name -> class of dims, for all classes that an argument has.

    `batch` is the leading dim of the inputs, and `length` the next one of integers. The inputs are the arguments of integers of
    the highest rank; without any, they are the arguments of a training step that no result replaces. What no op reads does not
    count. No dim is the batch if these do not all lead with the same one. Random keys have no ranges. Any other range is named
    after the first argument that has it, and its dim there.
    """
    named = {name: value for name, value in arguments.items() if value not in keys and program.shape(value)}
    read = {name: value for name, value in named.items() if program.is_read(value)}
    integers = [value for value in read.values() if program.types[value].dtype.startswith(("int", "uint"))]
    most = max((len(program.shape(value)) for value in integers), default=0)
    inputs = [value for value in integers if len(program.shape(value)) == most]
    if not inputs and len(replaced) >= FEWEST:
        inputs = [value for name, value in read.items() if name not in replaced]
    found = dict[str, int]()
    if len(leading := {classes.of(value, 0) for value in inputs}) == 1:
        found[BATCH] = leading.pop()
        lengths = {classes.of(value, 1) for value in integers if len(program.shape(value)) > 1 and value in inputs}
        if len(lengths) == 1 and found[BATCH] not in lengths:
            found[LENGTH] = lengths.pop()
    known = set(found.values())
    for name, value in named.items():
        for dim in range(len(program.shape(value))):
            if (root := classes.of(value, dim)) not in known:
                known.add(root)
                found[f"{name}.{dim}"] = root
    return found
