"""Evaluates a program in index notation element by element in plain Python: an oracle without einsums, windows, gathers."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partita.compiler.notation.scalar_functions import parameters
from partita.compiler.notation.terms import (
    SETTLED,
    Array,
    CheckedEquation,
    CheckedFunction,
    CheckedIndex,
    Dim,
    Mask,
    Term,
    dtype_alone,
    free,
)
from partita.dialects.definitions.syntax_tree import Affine, Apply, Fold, Group, Number, Read
from partita.dialects.ground.dtypes import dtype_of
from partita.dialects.reference import scalar_functions

Arrays = dict[str, np.ndarray[Any, Any]]
Places = Mapping[CheckedIndex, int]


class Outside(Exception):
    """A window reads outside the array."""


def run(function: CheckedFunction, given: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """The results of a function without calls."""
    arrays: Arrays = {formal.name: value for formal, value in zip(function.arguments, given, strict=True)}
    for statement in function.statements:
        assert isinstance(statement, CheckedEquation)
        arrays[statement.left.array.name] = equation(statement, arrays)
    return [arrays[name] for name in function.returned]


def equation(statement: CheckedEquation, arrays: Arrays) -> np.ndarray[Any, Any]:
    made, dims = statement.left.array, statement.left.dims or ()
    out, begun = np.zeros(made.shape, dtype_of(made.dtype)), 0
    for term in statement.pieces:
        own = [dim.indices for dim in dims]
        if statement.along is not None:
            own[statement.along] = (next(each for each in free(term) if each.name == own[statement.along][0].name),)
        for places in ranges([index for each in own for index in each]):
            at = [joined(each, places) for each in own]
            if statement.along is not None:
                at[statement.along] += begun
            out[tuple(at)] = value(term, places, arrays)
        begun += own[statement.along][0].extent if statement.along is not None else 0
    return out


def ranges(indices: Sequence[CheckedIndex]) -> list[Places]:
    return [dict(zip(indices, at, strict=True)) for at in itertools.product(*(range(index.extent) for index in indices))]


def joined(indices: Sequence[CheckedIndex], places: Places) -> int:
    position = 0
    for index in indices:
        position = position * index.extent + places[index]
    return position


def value(term: Term, places: Places, arrays: Arrays) -> Any:
    match term:
        case Number(number):
            return number
        case Group(indices):
            return joined(indices, places)
        case Read(array, dims):
            return arrays[array.name][tuple(place(sub, array, dim, places, arrays) for dim, sub in enumerate(dims))]
        case Apply("cast", (arg,), wanted):
            return np.asarray(value(arg, places, arrays)).astype(dtype_of(wanted))[()]
        case Mask(condition):
            return value(condition, places, arrays)
        case Fold():
            return fold(term, places, arrays)
        case Apply("where", (condition, this, other)):
            return value(this if value(condition, places, arrays) else other, places, arrays)
        case Apply("mul", (Mask() as mask, other)) | Apply("mul", (other, Mask() as mask)):
            return value(other, places, arrays) if value(mask, places, arrays) else 0
        case Apply(name, args, made, _, params):
            return apply(name, [value(arg, places, arrays) for arg in args], args, made, params)


def apply(name: str, values: Sequence[Any], args: Sequence[Term], made: str, params: str) -> Any:
    kind = next((dtype_alone(arg) for arg in args if not isinstance(arg, Number)), None) or SETTLED.get(made, made)
    given = [np.asarray(each, dtype_of(kind)) for each in values]
    match name:
        case "add" | "sub" | "mul":
            return {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name](*given)[()]
        case "div":
            return scalar_functions.divide(*given)[()]
        case "neg":
            return (-given[0])[()]
        case "stop_gradient":
            return values[0]
        case "relu":
            return max(values[0], 0)
        case _:
            return scalar_functions.apply(name, given, parameters(params), dtype_of(made))[0][()]


def place(sub: Dim, array: Array, dim: int, places: Places, arrays: Arrays) -> int:
    match sub:
        case Affine(offset, factors):
            found = offset + sum(factor * places[index] for index, factor in factors)
            if not 0 <= found < array.shape[dim]:
                raise Outside
            return found
        case _:
            return int(value(sub, places, arrays))


def fold(term: Fold[CheckedIndex, Term], places: Places, arrays: Arrays) -> Any:
    seen: list[Any] = []
    for inner in ranges(term.indices):
        try:
            seen.append(value(term.body, {**places, **inner}, arrays))
        except Outside:
            continue
    made = np.asarray(seen, dtype_of(dtype_alone(term.body)))
    match term.monoid:
        case "argmax" | "argmin":
            return getattr(np, term.monoid)(made)
        case "max" | "min" if not seen:
            return -np.inf if term.monoid == "max" else np.inf
        case monoid:
            return getattr(np, monoid)(made)
