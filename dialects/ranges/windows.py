"""Windows: what a sliding window reads, how two of them compose, and the halo that a shard needs."""

from __future__ import annotations

from .terms import Of, Range, Window


def windows_of(r: Range) -> Window | None:
    """The window of a range that has a halo, one for each iteration; None if the range has none.

    ```
    win<64,66,1,1>(data) of 512   -->   win<64,66,1,1>(data)
    ```
    """
    if not isinstance(r, Of):
        return None
    # A window of one element a place is the place, by the laws.
    return r.base if isinstance(r.base, Window) else Window(r.base, 1, 1)


def reads(window: Window, begin: int, end: int) -> tuple[int, int]:
    """The interval of inputs that the outputs `[begin, end)` read. It may extend below 0 and beyond the input's end.

    ```
    outputs [b, e)  -->  inputs [b·s - lo, (e-1)·s + (k-1)·d + 1 - lo), and the other way round if s is negative
    ```
    """
    first, last = (begin, end - 1) if window.stride > 0 else (end - 1, begin)
    return first * window.stride - window.lo, last * window.stride + window.width - window.lo


def compose(first: Window, second: Window) -> Window:
    """The one window that reads what `first` reads in order to compute what `second` reads.

    `second` slides over the outputs of `first`, as one convolution after another, so the base is `second`'s. A window
    reads an interval, so the composition is exact even where the strides leave holes.

    ```
    win<s1,k1,d1,lo1>(win<s2,k2,d2,lo2>(r))  -->  win<s1·s2, K1 + (K2-1)·s1, 1, lo1 + lo2·s1>(r)    K = (k-1)·d + 1
    ```

    If s1 is negative, the last output that `second` reads is the first one here.
    """
    begin, end = reads(first, -second.lo, second.width - second.lo)
    return Window(
        second.base,
        first.stride * second.stride,
        end - begin,
        1,
        -begin,
    )


def halo(window: Window, shard: int, output_block: int, input_block: int) -> tuple[int, int]:
    """The numbers of elements that a shard needs from before and from after its own block of the input.

    The shard makes outputs `[i·c, (i+1)·c)` and holds inputs `[i·ci, (i+1)·ci)`. A negative number says that it holds
    elements at that side that it does not read. When `ci = c·s`, as for a stride that divides the block, no shard's
    halo depends on which shard it is.

    ```
    left   i·(ci - c·s) + lo                                    own: [i·ci ........ (i+1)·ci)
    right  (i+1)·(c·s - ci) + (k-1)·d + 1 - s - lo    reads:  [left|........................|right)
    ```
    """
    begin, end = reads(window, shard * output_block, (shard + 1) * output_block)
    return shard * input_block - begin, end - (shard + 1) * input_block
