"""The section of the page of the laws on steps: each kind with its picture and what is proved of it."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

from partita.rewrites.proofs.of_steps.step_laws import NOT_PROVED, step_laws, step_verdict

HEAD = """
## Steps of redistribution

What a step emits takes the local arrays of one layout to those of another: then every device has exactly the elements that the
layout says. The code that emits a step runs on numbers that stand for any, once for each way in which its comparisons can come
out. The factors of a dim are written major to minor. `a`, `b` and `c` are mesh axes, `d` and `e` the outer and the inner part
of one; other letters are sizes, and `a'` is an extent as long as the axis `a`. In `{+a}` a sum is pending over `a`. All sizes,
coordinates and strides are any, and so are the numbers of devices, but where a law gives them.
"""
PICTURES = {
    "slice": "[32] over data=8   -->   [data*4]",
    "all_gather": "[data*64] over data   -->   [256]",
    "reduce_scatter": "[256]{+data}   -->   [data*64]",
    "all_to_all": "[data*64, 8]   -->   [256, data*2]",
    "all_reduce": "[256]{+data}   -->   [256]",
    "pad": "[30]   -->   [32]",
    "cut": "[32]   -->   [30]",
    "permute": "[a*64]   -->   [b*64]",
    "pieces": "[2*a*3]   -->   [3*a*2]",
    "halo": "[data*64]   -->   [win<64,66,1,1>(data) of 512]",
}


def steps_section() -> Iterator[str]:
    """A part of the section after another."""
    yield HEAD
    for kind, picture in PICTURES.items():
        yield f"### {kind}\n\n```text\n{picture}\n```\n"
        for law in step_laws():
            if law.kind == kind:
                text = f"`{law.text}`, {law.what}" if law.text else law.what.replace("-->", "to")
                yield fill(f"* {text}: {step_verdict(law.name).state}.", 128, subsequent_indent="  ", break_on_hyphens=False)
        yield ""
    yield "### Not proved\n"
    yield from (fill(f"* {kind}: {why}.", 128, subsequent_indent="  ") for kind, why in NOT_PROVED.items())
