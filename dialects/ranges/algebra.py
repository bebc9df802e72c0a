"""The range algebra: a range says how many, a place says where its iterations run.

Every dimension of every array is a range. To distribute a program is to factor ranges and to place factors. Layouts, tilings,
reshapes, windows and collectives are computed in this small algebra.

```
r ::= n                     the range 0 .. n-1
    | a, a@left             a mesh axis, of a device set                    placed in space
    | a.0:2                 a factor of a mesh axis                         placed in space
    | t:n                   a named loop                                    placed in time
    | r * s                 product, major * minor: (i, j) is i·|s| + j     tiling, splitting
    | r + s                 sum: inl i is i, inr j is |r| + j               concatenation, tails
    | r[off : len : step]   sub-range
    | pad(r, lo, hi)        r with undefined elements around it
    | win<s,k,d,lo>(r)      window: outputs [b, e) read inputs [b·s - lo, (e-1)·s + (k-1)·d + 1 - lo)
```

Block is `a * c`, cyclic is `c * a`, block-cyclic is `q * a * b`: the three differ by a permutation. This page is the
table of contents: the terms (`terms`), the laws as constructors (`laws`), the meaning (`denotation`), how
factorisations fit together (`common_refinement`), `windows`, and reading the text back (`text`).
"""

from .common_refinement import refine
from .denotation import denote, local, local_block, size, space
from .laws import known_size, pad, product, sub, sum_, window
from .terms import (
    Axis,
    Devices,
    Extent,
    Loop,
    Of,
    Pad,
    Place,
    Product,
    Range,
    Sub,
    SubAxis,
    Sum,
    Window,
    all_axes,
    coordinate,
    in_time,
    major_to_minor,
    nesting,
    placed,
    twice,
)
from .text import parse_range
from .windows import compose, halo, reads

__all__ = [
    "Axis",
    "Devices",
    "Extent",
    "Loop",
    "Of",
    "Pad",
    "Place",
    "Product",
    "Range",
    "Sub",
    "SubAxis",
    "Sum",
    "Window",
    "all_axes",
    "compose",
    "coordinate",
    "denote",
    "halo",
    "in_time",
    "known_size",
    "local",
    "local_block",
    "major_to_minor",
    "nesting",
    "pad",
    "parse_range",
    "placed",
    "product",
    "reads",
    "refine",
    "size",
    "space",
    "sub",
    "sum_",
    "twice",
    "window",
]
