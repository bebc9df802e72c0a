"""Extents: whole numbers, their names, sums and products of these, and quotients that are exact."""

from __future__ import annotations

from collections.abc import Mapping

from lark import Token

from ...dialects.grammar import Node, phrases, words
from .diagnostics import Text
from .scalars import arithmetic


def size(text: Text, node: Node, known: Mapping[str, int]) -> int:
    """The value of an extent. Raises `Wrong` for an unknown name, and for what is no whole number of 0 or more."""
    value = _value(text, node, known, node)
    if value < 0:
        text.fail("extent_negative", node, said=text.said(node), value=value)
    return value


def _value(text: Text, node: Node, known: Mapping[str, int], whole: Node) -> int:
    match node.data:
        case "number" if (word := words(node)[0]).isdecimal():
            return int(word)
        case "extent":
            return named(text, words(node)[0], known)
        case "name":
            word = words(node)[0]
            raise text.wrong("extent_lower", word, name=word, upper=word.upper())
        case "add" | "sub" | "mul" | "div" | "neg":
            values = [_value(text, each, known, whole) for each in phrases(node)]
            if node.data == "div" and (not values[1] or values[0] % values[1]):
                text.fail("extent_divide", node, said=text.said(node), value=f"{values[0]} / {values[1]}")
            return values[0] // values[1] if node.data == "div" else int(arithmetic(node.data, values) or 0)
        case _:
            raise text.wrong("extent_number", node, said=text.said(node))


def named(text: Text, word: Token, known: Mapping[str, int]) -> int:
    if word not in known:
        text.fail("extent_unknown", word, known, name=word)
    return known[word]


def bind(text: Text, word: Token, value: int, known: dict[str, int]) -> None:
    """Gives an extent its name."""
    if not word[0].isupper():
        text.fail("extent_lower", word, name=word, upper=word.upper())
    if word in known:
        text.fail("extent_twice", word, name=word, value=known[word])
    known[str(word)] = value
