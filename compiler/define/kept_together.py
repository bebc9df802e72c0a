"""A definition with an index whose values stay together in blocks: the line to write if smaller blocks do not agree.

softmax(x)  out[i, j:] = @(x[i, j:])    -->    out[(i b), j:] = @(x[(i b), j:])  size b = 2
"""

from __future__ import annotations

import re

from ...dialects.definitions.tree import Definition

_NAMES = ("b", "c", "e", "block", "part")


def kept_together(text: str, definition: Definition, index: str, size: int) -> str:
    """The help text; it contains the full line if the index can be factored there."""
    clauses = definition.at or definition.sizes or definition.extents or definition.front or definition.backwards
    body = text.partition(")")[2].strip()
    names = [name for name in _NAMES if not re.search(rf"(?<!\w){name}(?!\w)", text)]
    if clauses or index.endswith("..") or not names or re.search(rf"\[\s*{index}\s*=|\+\s*{index}(?!\w)", body):
        return f"say that blocks of {size} stay together: `({index.rstrip('.')} b)`, followed by `size b = {size}`"
    block = names[0]
    factored = re.sub(rf"(?<=[\[,])(\s*){index}(?=\s*[\],])", rf"\1({index} {block})", _folded(body, index, block))
    return f"say that blocks of {size} stay together: `{' '.join(factored.split())}  size {block} = {size}`"


def _folded(body: str, index: str, block: str) -> str:
    """A fold over the index goes over its blocks too: `sum(i)` becomes `sum(i, b)`."""
    return re.sub(rf"(\w+\([^()\[\]]*(?<!\w){index})(?=\s*[,)])", rf"\1, {block}", body)
