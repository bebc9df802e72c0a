"""From a text to lark's tree, or to the error: what the grammar expected, and what the author may have meant.

y[b] = exp x[b]     -->     unexpected `x`: write a function's argument in parentheses
y[b] = x[b] % 2     -->     the notation has no sign `%`: write a remainder as `rem(a, b)`
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import cast

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from ...dialects import grammar
from ...dialects.definitions.operators import ARITHMETIC
from ...dialects.grammar import SyntaxNode, TooDeep, phrases
from ...dialects.ground.errors import Span
from .diagnostics import Text, Wrong

GRAMMAR = Path(__file__).with_name("program.lark")
STARTS = "start", "body", "line"
"""The phrases that the grammar reads: a whole file, the contents of a `plan` block, the statements of a session's line."""
CHAINS = frozenset((*ARITHMETIC, "either", "both"))
"""The operators that may follow one another any number of times: `left_spine` walks them."""

# The names of the grammar's terminals in messages. One phrase replaces terminals that all begin or continue it.
SPELLING = {
    "NAME": "a name", "UPPER": "an extent", "NUMBER": "a number", "FOLD": "a fold", "COMPARE": "a comparison",
    "STRING": "a text", "VALUE": "a value's name", "DIM": "a dim", "CALL": "a tactic", "$END": "the end",
    "AXIS": "a mesh axis", "PART": "a sub-axis",
}  # fmt: skip
PUNCTUATION = {
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "LBRACE": "{", "RBRACE": "}", "COMMA": ",", "COLON": ":",
    "EQUAL": "=", "AT": "@", "PLUS": "+", "MINUS": "-", "STAR": "*", "SLASH": "/", "DOT": ".", "SEMICOLON": ";",
    "ARROW": "->", "JOIN": "++", "_NOTHING": "()", "OPAQUE": "lax.", "LABEL": "name",
}  # fmt: skip
SAVED = {"RECORD", "LAYOUTS", "WHOLE"}
"""The terminals that only `plan.save` writes."""
OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH", "COMPARE", "AND", "OR"}
BEGINNINGS = {"NAME", "NUMBER", "LPAR", "LSQB", "MINUS", "FOLD"}
_HABITS = {
    "if then else where ?": "write a choice as `where(condition, x[i], y[i])`",
    "for while": "an equation defines all elements, `y[i] = ...`; write a loop in Python, around functions",
    "** ^": "write a power as `square(x[i])`, `integer_pow(x[i], y=3)` or `pow(x[i], 0.5)`",
    "& &&": "combine booleans with `and`",
    "| ||": "combine booleans with `or`",
    "! ~": "negate booleans with `not`, and write unequal as `!=`",
    "%": "write a remainder as `rem(a, b)`",
    "//": "comments begin with `#`; `div(a, b)` divides integers and drops the remainder",
    "@": "write a matrix product as `sum(k) x[i, k] * w[k, j]`; `@` comes before mesh axes, on the left and in types",
    ".": "write a function by its name alone, `exp(x[i])`, and a transpose as `y[j, i] = x[i, j]`",
    "+=": "a value has one equation: write the sum inside it",
    "][": "write all indices in one pair of brackets: `x[b, d]`",
    "..": "write an index for every dim: `x[b, s, d]`",
    ":": "write an index for every dim, `x[b, d]`; declare ranges on the left, and types for arguments and results",
    "def": "a function begins with `fn`",
    "mean": "write a mean as `sum(k) x[b, k] / K`",
}
HABITS = {word: cure for words, cure in _HABITS.items() for word in words.split()}
"""Habits from other languages -> what to write in the notation."""
BEHIND = {
    **{word: HABITS[word] for word in ("if", "then", "else", "where", "for", "while")},
    "return": "`return` takes names, `return y, z`: name each value by an equation before it",
    "->": "separate the types of the results by commas: `-> f32[8], f32[8]`",
}
"""Words -> the cure for a mistake directly after them."""
BEGIN = "begin an equation with a name, `y[i] = ...`, and end a function with `return y`"
CURES_OF_SETS = {
    "LSQB": "write a type with its extents, `f32[8, 4]`; a scalar is `f32[]`",
    "LPAR NAME PLUS RSQB": "an equation defines all elements: write indices on the left, `y[i] = ...`",
    "COLON": "write an argument with its type: `x: f32[B=8]`",
    "COMMA EQUAL": BEGIN,
    "COMMA EQUAL LSQB": BEGIN,
    "OVER": "write the axes after `over`: `tile range B over data`",
    "DOT OVER": "write the axes after `over`: `tile range B over data`",
    "AXIS": "write a mesh axis here by its name alone: `data`",
    "AS": "write the name of a range after `as`: `name x.0 as B`",
}
"""The cures where the grammar allows exactly these terminals."""
CURES = {
    "LBRACE": "write its contents in braces: `{ ... }`",
    "ARROW": "write the types of the results after an arrow: `fn f(x: f32[B=8]) -> f32[B]`",
    "MESH": "a file contains `mesh`, `let`, `fn` and `plan`",
    "RETURN": "a function contains equations, `y[i] = x[i]`, and ends with `return y`",
    "PROPAGATE": "a plan contains `tile x.0 @data`, `replicate x @data`, `name x.0 as B`, `propagate data`, or a tactic's call",
}
"""The cures where the grammar allows this terminal, among others."""
CONTENTS = (
    "a program has functions, `fn name(x: f32[B=8]) -> f32[B] { ... }`; "
    "a plan file, which `plan.save` writes, has a mesh and tactics: `mesh data=4` and `plan step { tile x.0 @data }`"
)
BESIDE = "write an operator between two values, `a * b`, and a function's argument in parentheses, `exp(x[i])`"


def tree(text: Text, start: str = "start") -> SyntaxNode:
    """The tree of a text, or of one kind of phrase. Raises `Wrong` if the grammar does not accept it, and for an empty file."""
    try:
        found = grammar.read(GRAMMAR, text.source, start, STARTS, chains=CHAINS)
    except TooDeep as error:
        raise text.wrong("too_deep", error.span) from None
    except UnexpectedInput as error:
        raise misread(text, error) from None
    if start == "start" and not found.children:
        state = "has nothing but comments" if text.source.strip() else "is empty"
        text.fail("empty", Span(1, 1, 1, 1), file=Path(text.file).name, state=state, contents=CONTENTS)
    return found


def left_spine(node: SyntaxNode, among: Collection[str]) -> list[SyntaxNode]:
    """The phrase, its first part, the first part of that, and so on through phrases of these kinds: `a + b + c` is a chain."""
    spine = [node]
    while spine[-1].data in among:
        spine.append(phrases(spine[-1])[0])
    return spine


def misread(text: Text, error: UnexpectedInput) -> Wrong:
    """The error for a text that the grammar does not accept."""
    if (mark := CONFLICT.search(text.source)) is not None:
        return text.wrong("merge", _at(text, *mark.span()), mark=mark[0])
    if not isinstance(error, UnexpectedToken):
        at = error.pos_in_stream or 0
        sign = text.source[at]
        said = HABITS.get(sign, "names are letters, digits and `_`; comments begin with `#`")
        return text.wrong("no_sign", _at(text, at, at + 1), sign=sign, cure=said)
    token, names = cast(Token, error.token), set(error.accepts or ())  # pyright: ignore
    start = len(text.source) if token.type == "$END" else token.start_pos or 0
    if "CALL" in names and (left := unclosed(text, start)) is not None:
        return left
    if names <= {"COMMA", "EQUAL", "LSQB"} and (found := LEFT_BEHIND.search(text.source, 0, start)) is not None:
        said = next((HABITS[each] for each in (found["word"], found["name"]) if each in HABITS), BESIDE)
        words = {"expected": "an operator, or the equation's end", "cure": said}
        return text.wrong("unexpected", _at(text, *found.span("name")), found=found["name"], **words)
    words = {"expected": expected(names), "cure": syntax_cure(text.source[:start], text.source[start:], str(token), names)}
    if token.type == "$END":
        end = len(text.source.rstrip())
        return text.wrong("unfinished", _at(text, end, end + 1), **words)
    at = Span(token.line or 1, token.column or 1, token.end_line or 1, token.end_column or 1)
    # A call and rows of layouts may have several lines: the title shows the first one.
    return text.wrong("unexpected", at, found=str(token).partition("\n")[0], **words)


CONFLICT = re.compile(r"^(<{7}|\|{7}|={7}|>{7})(?= |$)", re.MULTILINE)
"""What git writes into a file where two branches change the same lines."""
UPPER = re.compile(r"[A-Z]\w*")
LEFT_BEHIND = re.compile(
    r"""
    (?: (?P<word> [a-z]\w*) (?:[ \t]* [(\[][^()\[\]\n]*[)\]])? [ \t]+ | [\d)\]][ \t]* )
    (?P<name> (?!return\b)[a-z]\w*) (?:[ \t]* \[[^][\n]*\])? \s*\Z
    """,
    re.VERBOSE,
)
"""Matches a name in the middle of a line that was read as the next equation's left side."""


def _at(text: Text, start: int, end: int) -> Span:
    """A part of one line, from its offsets in the source."""
    line, begin = text.source.count("\n", 0, start) + 1, text.source.rfind("\n", 0, start) + 1
    return Span(line, start - begin + 1, line, end - begin + 1)


def expected(names: set[str]) -> str:
    """The words that the grammar expected; those that begin or continue an expression are listed as one."""
    left, words = names - SAVED, list[str]()
    if left >= BEGINNINGS:
        left -= {*BEGINNINGS, "UPPER", "OPAQUE", "NOT"}
        words.append("an expression")
    if len(left & OPERATORS) > 2:
        left -= OPERATORS | {"JOIN", "FN", "LET", "MESH", "PLAN", "EQUAL", "AT"}
        words.append("an operator")
    if left - OPERATORS:
        left -= {"AND", "OR"}
    words += sorted(SPELLING.get(each) or f"`{PUNCTUATION.get(each) or each.lower()}`" for each in left)
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def syntax_cure(before: str, behind: str, found: str, names: set[str]) -> str:
    """The cure for an unexpected word: what its author may have meant, or what the grammar allows between these texts."""
    plan = "PROPAGATE" in names
    word = re.search(r"(\w+|->)(?=\s*\Z)", before)
    if word is not None and word[0] in BEHIND:
        return BEHIND[word[0]]
    if UPPER.fullmatch(found) and "NAME" in names and re.search(r"[\[(,]\s*\Z", before):
        return f"indices are lower case, `{found.lower()}`: upper case names extents"
    if word is not None and found == "[" and UPPER.fullmatch(word[0]):
        return f"values are lower case, `{word[0].lower()}`: upper case names extents"
    if (exactly := " ".join(sorted(names))) in CURES_OF_SETS:
        return CURES_OF_SETS[exactly]
    if plan and "AT" in names and found.isidentifier():
        return f"did you mean `@{found}`? `@` comes before a mesh axis"
    for habit in (before[-1:] + behind[:1], behind[:2], found):
        if habit in HABITS and len(names) > 1 and not plan and "LBRACE" not in names:
            return HABITS[habit]
    if behind and re.search(r"\breturn\b[\w\s,]*\Z", before):
        return BEHIND["return"]
    return next((said for mark, said in CURES.items() if mark in names), "`docs/notation.md` describes the grammar")


CLOSES = {"(": ")", "[": "]", "{": "}"}
_CALL = re.compile(r"[A-Za-z]\w*\s*\(")
_PIECE = re.compile(r"""(?P<text>"([^"\\\n]|\\.)*"|'([^'\\\n]|\\.)*')|(?P<open>["'])|(?P<mark>[()\[\]{}])""")


def unclosed(text: Text, start: int) -> Wrong | None:
    """The error for a call that begins at `start`, if it or a text in it is not closed; it points at where the end is missing.

    Megatron("model"     -->     `Megatron(` is not closed
                     ^ expected `)`
    """
    source = text.source
    call = _CALL.match(source, start)
    if call is None:
        return None

    def wrong(opened: str, wanted: str, at: int) -> Wrong:
        return text.wrong("unclosed", _at(text, at, at + 1), opened=opened, wanted=wanted)

    opened = [call[0]]
    for piece in _PIECE.finditer(source, call.end()):
        if piece["open"]:
            end = source.find("\n", piece.end())
            line = source[piece.start() : end if end >= 0 else len(source)].rstrip()
            return wrong(line, piece["open"], piece.start() + len(line))
        if piece["mark"] in CLOSES:
            opened.append(piece["mark"])
        elif piece["mark"] and piece["mark"] != CLOSES[opened[-1][-1]]:
            return wrong(opened[-1], CLOSES[opened[-1][-1]], len(source[: piece.start()].rstrip()))
        elif piece["mark"]:
            opened.pop()
            if not opened:
                return None
    return wrong(opened[-1], CLOSES[opened[-1][-1]], len(source.rstrip()))
