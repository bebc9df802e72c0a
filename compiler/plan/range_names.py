"""Names for the ranges of a program that its author did not name.

train_step(params, opt, batch): dim 0 of batch/tokens, of batch/labels and of the activations   -->   `batch`
its dim 1                                                                                       -->   `length`
dim 1 of params/w1 and dim 0 of params/w2                                                       -->   `params/w1.1`
"""

from collections.abc import Collection, Mapping

from ...rewrites.program.dim_classes import Classes
from ...rewrites.program.program import Program

BATCH, LENGTH = "batch", "length"


def range_names(program: Program, classes: Classes, arguments: Mapping[str, int], kept: Collection[str]) -> dict[str, int]:
    """Name -> class of dims, for all classes that an argument has. `kept` are the arguments that a result replaces.

    The leading dim of most inputs, arguments that no result replaces, is the batch; the next dim of an input of integers is the
    length of its sequences. Any other range is named after the first argument that has it, and its dim there.
    """
    inputs = {name: value for name, value in arguments.items() if name not in kept and program.shape(value)}
    tokens = [value for value in inputs.values() if program.types[value].dtype.startswith(("int", "uint"))]
    found = dict[str, int]()
    # Where nothing is replaced, parameters may be among the inputs, but not among those of integers.
    if leading := [classes.of(value, 0) for value in (inputs.values() if kept else tokens)]:
        found[BATCH] = max(dict.fromkeys(leading), key=leading.count)
    sequences = [classes.of(value, 1) for value in tokens if len(program.shape(value)) > 1]
    if sequences and sequences[0] != found.get(BATCH):
        found[LENGTH] = sequences[0]
    named = set(found.values())
    for name, value in arguments.items():
        for dim in range(len(program.shape(value))):
            if (root := classes.of(value, dim)) not in named:
                named.add(root)
                found[f"{name}.{dim}"] = root
    return found
