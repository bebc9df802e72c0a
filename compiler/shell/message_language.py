"""The language of a session: answers cite tactics and questions as lines of the shell, not as Python.

plan.tile('x', 0, 'data')     -->     `tile x.0 @data`
plan.ranges()                 -->     `ranges`
.all(), of `show params`      -->     `show params all`
"""

from dataclasses import replace

from ...dialects.ground.errors import Error
from ..api.tactics import Tactic
from ..inputs.message_language import Language
from ..inputs.tactic_calls import Call
from ..notation.tactic_statements import statement
from .typed_line import Typed
from .typed_tactics import is_tactic


def language(typed: Typed) -> Language:
    """The language for answers to this line: an answer that is cut repeats the line with `all`."""
    is_call = bool(typed.words) and is_tactic(typed) and "(" in typed.said

    def whole(_: str) -> str:
        return f"`{typed.said} all`"

    return replace(SHELL, option=("{}=True" if is_call else "`{}`").format, whole=whole)


def _cited(line: str) -> str:
    """A line of a trace as `history` shows it. Lines for constraints of the program itself stay as they are."""
    try:
        return statement(line)
    except Error:
        return line


def _line(line: str) -> str:
    """The shortest line for a call. In a statement, `AXIS` stands for an axis that the reader has to choose."""
    try:
        call = Call.read(line)
        asked = str(replace(call, args=tuple("AXIS" if each is ... else each for each in call.args)))
        if call.name in Tactic.known:
            # A trace has all arguments by their names.
            asked = repr(Tactic.known[call.name](*call.args, **call.kwargs))
    except Error:
        return line
    made = _cited(asked)
    return line if made == asked else made


SHELL = Language(
    _cited,
    lambda lines: f"`{'; '.join(map(_line, lines))}`",
    "`{}`".format,
    lambda asked: f"`{asked.shell}`",
    "`{} all`".format,
    lambda number: f"`cure {number + 1}`: ",
    lambda number: f"`explain conflict {number + 1}`",
    first=1,
)
"""The language of the shell where no line is being answered."""
