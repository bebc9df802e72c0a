"""Stores the names of a program's arguments and results as attributes of its function, which every form of the program keeps.

func.func @main(%0: f32[8]) -> f32[8] attributes {arg_names = ["x"], result_names = ["result"]}
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BytesAttr, StringAttr
from xdsl.ir import Operation

ARGUMENTS, RESULTS = "arg_names", "result_names"


def set_names(program: Operation, arguments: Sequence[str], results: Sequence[str]) -> None:
    for key, names in ((ARGUMENTS, arguments), (RESULTS, results)):
        program.attributes[key] = ArrayAttr([StringAttr(name) for name in names])


def keep_names(old: Operation, new: Operation) -> None:
    """Copies the names of arguments and results from an old form of a program to a new one."""
    new.attributes.update({key: old.attributes[key] for key in (ARGUMENTS, RESULTS) if key in old.attributes})


def names_of(program: Operation, key: str) -> tuple[str, ...] | None:
    """Returns the names of the arguments or the results, as `key` says; None if the program has no names."""
    found = cast("ArrayAttr[StringAttr | BytesAttr] | None", program.attributes.get(key))
    # xDSL reads a text with letters beyond ASCII as bytes.
    return None if found is None else tuple(each.data if isinstance(each, StringAttr) else each.data.decode() for each in found)
