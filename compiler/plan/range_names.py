"""Suggests names for the ranges of a program that its author did not name.

train_step(params, opt, batch): dim 0 of batch/tokens, of batch/labels and of the activations   -->   `batch`
its dim 1                                                                                       -->   `length`
dim 1 of params/w1 and dim 0 of params/w2                                                       -->   `params/w1.1`
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ...dialects.ground.dtypes import is_integer
from ...rewrites.program.dim_classes import Classes
from ...rewrites.program.program import Program, ValueId

BATCH, LENGTH = "batch", "length"
FEWEST = 2
"""From this number of replaced arguments on, a program counts as a training step."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arguments that may lead with the batch, with the classes of their leading dims."""

    values: tuple[ValueId, ...] = ()
    roots: frozenset[int] = frozenset()
    is_batch: bool = False
    """Whether they agree: all lead with one range, or with ranges of equal length, as the inputs of two encoders do."""


def guessed_inputs(
    program: Program, classes: Classes, arguments: Mapping[str, ValueId], replaced: Collection[str], given: Collection[ValueId]
) -> Inputs:
    """Guesses the inputs: integers of the highest rank; if these disagree, arguments of a training step that stay; if these
    do too, those of them that lead with no range of what the step replaces, as frozen weights do.

    Arguments that no op reads do not count, nor do arrays that the function closes over, if those that it is given have more
    dims. If all guesses disagree, the result has the arguments that do.
    """
    read = {name: value for name, value in arguments.items() if program.shape(value) and program.is_read(value)}
    integers = {name: v for name, v in read.items() if is_integer(program.types[v].dtype)}
    most = max((len(program.shape(value)) for value in integers.values()), default=0)
    ranked = [value for value in integers.values() if len(program.shape(value)) == most]
    others = [value for name, value in read.items() if name not in replaced and name not in integers]
    most = max((len(program.shape(value)) for value in others if value in given), default=0)
    others = [value for value in others if value in given or len(program.shape(value)) >= most]
    trained = {root for name, value in read.items() if name in replaced for root in classes.dims(value)}
    apart = [value for value in others if classes.of(value, 0) not in trained]
    found: list[Inputs] = []
    for values in (ranked, *((others, apart) if len(replaced) >= FEWEST else ())):
        roots, lengths = {classes.of(value, 0) for value in values}, {program.shape(value)[0] for value in values}
        agree = len(roots) == 1 or (len(lengths) == 1 and lengths != {1})
        found.append(Inputs(tuple(values), frozenset(roots), agree))
    return next((each for each in found if each.is_batch), next((each for each in found if each.values), Inputs()))


def range_names(
    program: Program, classes: Classes, arguments: Mapping[str, ValueId], leading: Inputs, keys: Collection[ValueId]
) -> dict[str, int]:
    """Names all classes of dims that an argument has.

    `batch` is what the inputs lead with, if it is one class, and `length` the next one of integers. Any other range is named
    after the first argument that has it, and its dim there.
    """
    named = {name: value for name, value in arguments.items() if value not in keys and program.shape(value)}
    found = dict[str, int]()
    if len(leading.roots) == 1 and leading.is_batch:
        (found[BATCH],) = leading.roots
        integers = [value for value in leading.values if is_integer(program.types[value].dtype)]
        lengths = {classes.of(value, 1) for value in integers if len(program.shape(value)) > 1}
        if len(lengths) == 1 and found[BATCH] not in lengths:
            found[LENGTH] = lengths.pop()
    known = set(found.values())
    for name, value in named.items():
        for dim in range(len(program.shape(value))):
            if (root := classes.of(value, dim)) not in known:
                known.add(root)
                found[f"{name}.{dim}"] = root
    return found
