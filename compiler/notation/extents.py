"""Extents: integers, their names, and sums, differences, products and exact quotients of these."""

import math
from collections.abc import Mapping

from ...dialects.definitions.operators import ARITHMETIC
from ...dialects.grammar import SyntaxNode, Word, phrases
from ...dialects.ground.dtypes import dtype_of
from .diagnostics import Text, Where, word_of
from .parse import left_spine
from .scalar_functions import arithmetic
from .terms import Array

LARGEST_EXTENT = 2**63 - 1
"""The largest extent, and the most bytes of an array, that XLA counts."""


def extent_value(text: Text, node: SyntaxNode, known: Mapping[str, int]) -> int:
    """The value of an extent. Raises `Wrong` for an unknown name, and unless the value is an integer of 0 or more."""
    try:
        value = _value(text, node, known)
    except RecursionError:
        raise text.wrong("too_deep", node) from None
    if value < 0:
        text.fail("extent_negative", node, said=text.said(node), value=value)
    return value


def extent_of(node: SyntaxNode) -> SyntaxNode | None:
    """The extent that a phrase declares, of a dim or of an index."""
    return next((each for each in phrases(node) if each.data not in ("word", "places")), None)


def _value(text: Text, node: SyntaxNode, known: Mapping[str, int]) -> int:
    """The value of a phrase; a chain of operators of any length is walked from its first operand on."""
    *operators, first = left_spine(node, ARITHMETIC)
    value = _operand(text, first, known)
    for each in reversed(operators):
        value = _combined(text, each, [value, *(_value(text, right, known) for right in phrases(each)[1:])])
    return value


def _combined(text: Text, node: SyntaxNode, values: list[int]) -> int:
    if node.data == "div" and (not values[1] or values[0] % values[1]):
        text.fail("extent_divide", node, said=text.said(node), value=f"{values[0]} / {values[1]}")
    value = values[0] // values[1] if node.data == "div" else int(arithmetic(node.data, values) or 0)
    if abs(value) > LARGEST_EXTENT:
        text.fail("extent_large", node, said=text.said(node))
    return value


def _operand(text: Text, node: SyntaxNode, known: Mapping[str, int]) -> int:
    match node.data:
        case "number" if (word := word_of(node)).text.isdecimal():
            if len(word.text.lstrip("0")) > len(str(LARGEST_EXTENT)) or int(word.text) > LARGEST_EXTENT:
                text.fail("extent_large", node, said=word)
            return int(word.text)
        case "extent":
            return named_extent(text, word_of(node), known)
        case "name":
            word = word_of(node)
            raise text.wrong("extent_lower", word, upper=word.text.upper())
        case _:
            raise text.wrong("extent_number", node, said=text.said(node))


def check_bytes(text: Text, where: Where, array: Array) -> None:
    """Raises `Wrong` for an array of more bytes than XLA counts."""
    if math.prod(array.shape) * dtype_of(array.dtype).itemsize > LARGEST_EXTENT:
        text.fail("array_large", where, name=array.type)


def named_extent(text: Text, word: Word, known: Mapping[str, int]) -> int:
    if word.text not in known:
        text.fail("extent_unknown", word, known)
    return known[word.text]


def name_extent(text: Text, word: Word, value: int, known: dict[str, int]) -> None:
    """Gives an extent its name."""
    if not word.text[0].isupper():
        text.fail("extent_lower", word, upper=word.text.upper())
    if word.text in known:
        text.fail("extent_twice", word, value=known[word.text])
    known[str(word)] = value
