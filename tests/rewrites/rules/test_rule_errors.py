"""The error for a mistake in a rule file has its location, its line and what to write instead."""

from __future__ import annotations

from textwrap import dedent

import pytest

from partita.dialects.ground.errors import Error
from partita.rewrites.rules.compile import load

CASES = {
    "unbound": (
        "beta: slice(L, build(L, x)) => y",
        """
        error: rule `beta`: nothing on the left is called `y`
          --> <rules>:1:32
           |
         1 | beta: slice(L, build(L, x)) => y
           |                                ^ unbound
        help: the left side has `L`, `x`
        """,
    ),
    "unbound in a condition": (
        "swap: f(a) => g(a)   where size(a) = size(b)",
        """
        error: rule `swap`: nothing on the left is called `b`
          --> <rules>:1:43
           |
         1 | swap: f(a) => g(a)   where size(a) = size(b)
           |                                           ^ unbound
        help: the left side has `a`
        """,
    ),
    "twice": (
        "eta: f(x) => x\n\neta: g(x) => x",
        """
        error: rule `eta` is defined twice
          --> <rules>:3:1
           |
         3 | eta: g(x) => x
           | ^^^ also in line 1
        """,
    ),
    "arguments": (
        "one: slice(a, x) => x\ntwo: slice(x) => x",
        """
        error: `slice` has 2 arguments in line 1 and 1 here
          --> <rules>:2:6
           |
         2 | two: slice(x) => x
           |      ^^^^^
        """,
    ),
    "everything": (
        "all: x => f(x)",
        """
        error: rule `all` would rewrite everything
          --> <rules>:1:6
           |
         1 | all: x => f(x)
           |      ^ the left side must be an operation
        """,
    ),
    "arrow": (
        "beta: slice(L, x) = x",
        """
        error: a rule cannot go on with `=`
          --> <rules>:1:19
           |
         1 | beta: slice(L, x) = x
           |                   ^ expected `=>` or `-` or `+`
        help: a rule reads `name: left => right where condition`
        """,
    ),
    "sign": (
        "beta: f(x) => x ^ 2",
        """
        error: the rule language has no sign `^`
          --> <rules>:1:17
           |
         1 | beta: f(x) => x ^ 2
           |                 ^
        help: a rule reads `name: left => right where condition`
        """,
    ),
    "unfinished": (
        "beta: f(x) =>\n",
        """
        error: the rule is not finished
          --> <rules>:1:14
           |
         1 | beta: f(x) =>
           |              ^ expected a number or `(` or `-` or a name
        help: a rule reads `name: left => right where condition`
        """,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_shown_in_its_line(case: str) -> None:
    text, expected = CASES[case]
    with pytest.raises(Error) as caught:
        load(text)
    assert f"error: {caught.value}" == dedent(expected).strip()
