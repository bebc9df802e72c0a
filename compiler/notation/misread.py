"""What is said of a text that the grammar does not take: what was expected, and what a person may have meant.

y[b] = exp x[b]     -->     `x` cannot stand here: a function's argument stands in parentheses
y[b] = x[b] % 2     -->     `%` is no sign of the notation: the rest of a division is `rem(a, b)`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from .diagnostics import Span, Text, Wrong

# What the grammar's words are called when a person is told what was expected; a thing that many words begin stands for them.
SPELLING = {
    "NAME": "a name",
    "UPPER": "an extent",
    "NUMBER": "a number",
    "FOLD": "a fold",
    "OPAQUE": "`lax.`",
    "COMPARE": "a comparison",
    "STRING": "a text",
    "VALUE": "a value's name",
    "DIM": "a dim",
    "CALL": "a tactic",
    "ARROW": "`->`",
    "JOIN": "`++`",
    "_NOTHING": "`()`",
    "LABEL": "`name`",
    "$END": "the end",
}
SIGNS = {
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "LBRACE": "{", "RBRACE": "}", "COMMA": ",", "COLON": ":",
    "EQUAL": "=", "AT": "@", "PLUS": "+", "MINUS": "-", "STAR": "*", "SLASH": "/", "DOT": ".", "SEMICOLON": ";",
}  # fmt: skip
OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH", "COMPARE", "AND", "OR"}
BEGINNINGS = {"NAME", "NUMBER", "LPAR", "LSQB", "MINUS", "FOLD"}
HABITS: Mapping[str, str] = {
    **dict.fromkeys(("if", "then", "else", "where"), "a choice is `where(condition, x[i], y[i])`"),
    **dict.fromkeys(
        ("for", "while"), "an equation says all elements at once, `y[i] = ...`; a loop stands in Python, around functions"
    ),
    **dict.fromkeys(("**", "^"), "a power is `square(x[i])`, `integer_pow(x[i], y=3)` or `pow(x[i], 0.5)`"),
    **dict.fromkeys(("&", "&&"), "truth values go with `and`"),
    **dict.fromkeys(("|", "||"), "truth values go with `or`"),
    **dict.fromkeys(("!", "~"), "truth values go with `not`, and unequal is `!=`"),
    "%": "the rest of a division is `rem(a, b)`",
    "//": "comments begin with `#`; `div(a, b)` divides whole numbers and drops the rest",
    "@": "a matrix product is a sum, `sum(k) x[i, k] * w[k, j]`; on the left, and in types, `@` stands before mesh axes",
    ".": "functions stand by their names alone, `exp(x[i])`; a transpose is `y[j, i] = x[i, j]`",
    "?": "a choice is `where(condition, x[i], y[i])`",
    "+=": "a value has one equation: write the sum in it",
    "][": "all indices stand between one pair of brackets: `x[b, d]`",
    "..": "every dim has an index: `x[b, s, d]`",
    ":": "every dim has an index, `x[b, d]`, which may say its range on the left; types are those of arguments and results",
    "def": "a function begins with `fn`",
    "mean": "a mean is `sum(k) x[b, k] / K`",
}
"""What people write out of habit from other languages, and what it is called here."""
BEHIND: Mapping[str, str] = {
    **{word: HABITS[word] for word in ("if", "then", "else", "where", "for", "while")},
    "return": "`return` names values, `return y, z`: an equation before it gives each its name",
    "->": "the results' types stand one after another: `-> f32[8], f32[8]`",
}
"""What people write behind these words out of habit."""
EXACT: Mapping[frozenset[str], str] = {
    frozenset({"LSQB"}): "a type says its extents, `f32[8, 4]`; that of a scalar is `f32[]`",
    frozenset({"LPAR", "PLUS", "RSQB", "NAME"}): "an equation says all elements: indices stand on the left, `y[i] = ...`",
    frozenset({"COLON"}): "an argument says its type: `x: f32[B=8]`",
    **dict.fromkeys(
        (frozenset({"COMMA", "EQUAL"}), frozenset({"COMMA", "EQUAL", "LSQB"})),
        "a name begins an equation, `y[i] = ...`; the last line of a function is `return y`",
    ),
    frozenset({"OVER"}): "the dims of a range go over axes: `tile range B over data`",
}
CURES = (
    ("LBRACE", "what belongs to it stands between braces: `{ ... }`"),
    ("ARROW", "the types of the results stand behind an arrow: `fn f(x: f32[B=8]) -> f32[B]`"),
    ("MESH", "a file holds `mesh`, `let`, `fn` and `plan`"),
    ("RETURN", "a function holds equations, `y[i] = x[i]`, and ends with `return y`"),
    ("PROPAGATE", "a plan holds `tile x.0 @data`, `replicate x @data`, `name x.0 as B`, `propagate data`, or a tactic's call"),
)
BESIDE = "two things side by side want an operator, `a * b`; a function's argument stands in parentheses, `exp(x[i])`"


def misread(text: Text, error: UnexpectedInput) -> Wrong:
    """The error for a text that the grammar does not take."""
    if not isinstance(error, UnexpectedToken):
        at = error.pos_in_stream or 0
        sign = text.source[at]
        said = HABITS.get(sign, "names are letters, digits and `_`; comments begin with `#`")
        return text.wrong("no_sign", _at(text, at, at + 1), sign=sign, cure=said)
    token, names = cast(Token, error.token), set(error.accepts or ())  # pyright: ignore
    start = len(text.source) if token.type == "$END" else token.start_pos or 0
    if names <= {"COMMA", "EQUAL", "LSQB"} and (found := LEFT_BEHIND.search(text.source, 0, start)) is not None:
        said = next((HABITS[each] for each in (found["word"], found["name"]) if each in HABITS), BESIDE)
        words = {"expected": "an operator, or the equation's end", "cure": said}
        return text.wrong("unexpected", _at(text, *found.span("name")), found=found["name"], **words)
    words = {"expected": expected(names), "cure": cure(text.source[:start], text.source[start:], str(token), names)}
    if token.type == "$END":
        end = len(text.source.rstrip())
        return text.wrong("unfinished", _at(text, end, end + 1), **words)
    return text.wrong("unexpected", token, found=str(token), **words)


UPPER = re.compile(r"[A-Z]\w*")
LEFT_BEHIND = re.compile(
    r"""
    (?: (?P<word> [a-z]\w*) (?:[ \t]* [(\[][^()\[\]\n]*[)\]])? [ \t]+ | [\d)\]][ \t]* )
    (?P<name> (?!return\b)[a-z]\w*) (?:[ \t]* \[[^][\n]*\])? \s*\Z
    """,
    re.VERBOSE,
)
"""A name in the middle of a line that was read as the next equation's left side."""


def _at(text: Text, start: int, end: int) -> Span:
    """A stretch of one line, from its places in the source."""
    line, begin = text.source.count("\n", 0, start) + 1, text.source.rfind("\n", 0, start) + 1
    return Span(line, start - begin + 1, line, end - begin + 1)


def expected(names: set[str]) -> str:
    """The words that could have stood there, the many that begin or continue an expression as one."""
    left, words = set(names), list[str]()
    if left >= BEGINNINGS:
        left -= {*BEGINNINGS, "UPPER", "OPAQUE", "NOT"}
        words.append("an expression")
    if len(left & OPERATORS) > 2:
        left -= OPERATORS | {"JOIN", "FN", "LET", "MESH", "PLAN", "EQUAL", "AT"}
        words.append("an operator")
    if left - OPERATORS:
        left -= {"AND", "OR"}
    words += sorted(SPELLING.get(each) or f"`{SIGNS.get(each) or each.lower()}`" for each in left)
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def cure(before: str, behind: str, found: str, names: set[str]) -> str:
    """What to do about a word that stands between these: what people mean who write it, or what may stand there."""
    plan = "PROPAGATE" in names
    word = re.search(r"(\w+|->)(?=\s*\Z)", before)
    if word is not None and word[0] in BEHIND:
        return BEHIND[word[0]]
    if UPPER.fullmatch(found) and "NAME" in names and re.search(r"[\[(,]\s*\Z", before):
        return f"indices are lower case, `{found.lower()}`: upper case names extents"
    if word is not None and found == "[" and UPPER.fullmatch(word[0]):
        return f"values are lower case, `{word[0].lower()}`: upper case names extents"
    if frozenset(names) in EXACT:
        return EXACT[frozenset(names)]
    for habit in (before[-1:] + behind[:1], behind[:2], found):
        if habit in HABITS and len(names) > 1 and not plan and "LBRACE" not in names:
            return HABITS[habit]
    if behind and re.search(r"\breturn\b[\w\s,]*\Z", before):
        return BEHIND["return"]
    return next((said for mark, said in CURES if mark in names), "see `docs/notation.md` for what may stand where")
