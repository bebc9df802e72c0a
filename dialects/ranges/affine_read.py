"""How an index reads a dim through a window, and how placed factors pass from one to the other.

A convolution reads `x[p·2 + q - 1]`. With the outputs `p` placed in blocks of 8, a device reads 16 elements and a halo; and
so it does with the window's own index `q` placed, if that is the long one, as in the gradient of the kernel.

    p: 64, data at 8   -->   x: 128, data at 16, one element before          (a kernel of 3: stride 2, from -1 on, width 3)
"""

from __future__ import annotations

from dataclasses import dataclass

from .denotation import size
from .factor import Factor, fit, is_padded, windowed
from .terms import Window
from .windows import reads


@dataclass(frozen=True, slots=True)
class AffineRead:
    """How the values of an index, the base of `window`, read a dim of `size` elements that is dilated by `divisor`.

    Element `e` of the dim is at position `e·divisor`; the other positions, and those outside of the dim, have no element.
    """

    window: Window
    size: int
    divisor: int = 1

    @property
    def extent(self) -> int:
        """The number of values of the index."""
        return size(self.window.base)

    @property
    def only_shifts(self) -> bool:
        """Whether consecutive values of the index read consecutive elements of the dim, one each."""
        return (self.window.stride, self.window.kernel, self.divisor) == (1, 1, 1)

    def positions(self, factor: Factor) -> tuple[int, int]:
        """The first and the last position that the first block of the index reads."""
        begin, end = reads(self.window, -factor.before, factor.stride + factor.after)
        return begin, end - 1

    def outward(self, factor: Factor) -> Factor | None:
        """The factor of the dim that covers what each device reads, given the index's factor.

        None if windows differ between devices.
        """
        if factor.is_in_turn(self.extent):
            return factor if self.skips_rounds(factor) else None
        first, last = self.positions(factor)
        stride = factor.stride * self.window.stride
        begin, end = -(-first // self.divisor), last // self.divisor + 1
        if stride % self.divisor or begin >= end:
            return None
        stride //= self.divisor
        return windowed(self.size, factor.at(stride), -begin, end - stride)

    def skips_rounds(self, factor: Factor) -> bool:
        """Whether the index and the dim have their elements on the same devices when blocks are dealt in turn.

        ```
        64, data*2 (8 devices) in rounds of 16   -->   yes for [16:48], no for [8:24] and for [::2]
        ```

        This holds if one of them is a number of whole rounds of the other, as a part of a concatenation is.
        """
        begin, end = reads(self.window, 0, self.extent)
        is_one_in_the_other = begin * (end - self.size) <= 0
        return self.only_shifts and is_one_in_the_other and not any(n % factor.span for n in (begin, end, self.size))

    def gaps(self, factor: Factor) -> tuple[int, int]:
        """The numbers of positions without an element that a device reads before its first and after its last element."""
        first, last = self.positions(factor)
        return -first % self.divisor, last % self.divisor

    def inward(self, factor: Factor, padded: bool, shifts: bool = False) -> Factor | None:
        """The factor of the index for a given factor of the dim: equal blocks, windows near what they read, or padded blocks.

        With `shifts`, the op only shifts elements: every device then holds the few elements that are left over, beyond its
        blocks.
        """
        if factor.is_in_turn(self.size):
            return factor if self.skips_rounds(factor) else None
        stride, rest = divmod(factor.stride * self.divisor, self.window.stride)
        over = self.extent - factor.size * stride
        if shifts and not rest and 0 <= over <= stride:
            return windowed(self.extent, factor.at(stride), 0, over)
        even = factor.even(self.extent, False)
        return (even if shifts else _nearer(even, self.sliding(factor), stride, self.extent)) or factor.even(
            self.extent, padded
        )

    def sliding(self, factor: Factor) -> Factor | None:
        """The windows of `staying`, for an op that computes on what it reads; None if a device would read the whole dim."""
        there = self.staying(factor)
        read = None if there is None else self.outward(there)
        return there if read is not None and read.width < self.size else None

    def staying(self, factor: Factor) -> Factor | None:
        """The windows of the index that stay on the device that holds the middle of what they read.

        ```
        x: 64, data*8 (8 devices)   -->   x[1:-1]: 62, data*8 halo 1, -1          (and a VALID convolution with a kernel of 3)
        ```
        """
        stride, rest = divmod(factor.stride * self.divisor, self.window.stride)
        if rest or stride <= 0 or factor.is_in_turn(self.size):
            return None
        # Rounded towards zero, so that the transpose, whose middle is the negative, goes the same way back.
        twice = self.window.width - 1 - 2 * self.window.lo
        middle = twice // 2 if twice >= 0 else -(-twice // 2)
        before = (middle + factor.before * self.divisor) // self.window.stride
        after = -((middle - factor.after * self.divisor) // self.window.stride)
        there = windowed(self.extent, factor.at(stride), before, after)
        return there if fit(self.extent, [there]) else None

    def arriving(self, factor: Factor) -> Factor | None:
        """The factor of the index in which elements arrive, for an op that only shifts them.

        It is even blocks if they keep their length, else the windows in which the elements already are, else padded blocks.
        """
        blocks = self.inward(factor, True, True)
        even = None if blocks is None or is_padded(self.extent, [blocks]) else blocks
        short = None if blocks is None or blocks.leaves_out(self.extent) else blocks
        stride = factor.stride * self.divisor // self.window.stride
        return _nearer(even, self.staying(factor), stride, self.extent) or short

    def claim(self, factor: Factor, padded: bool, last: bool = True) -> Factor | None:
        """The factor of the dim for a given factor of the index: equal blocks, from which windows are exchanged.

        If no equal blocks have the right length, it is the windows that are read, if they tile the dim from another start. With
        `last`, blocks of another length or padded blocks are accepted, too.
        """
        if factor.span < self.extent:
            return factor if factor.is_in_turn(self.extent) and self.skips_rounds(factor) else None
        even = factor.even(self.size, False)
        if (there := self.tiles(factor)) is not None:
            return _nearer(even, there, factor.stride, self.size)
        if even is not None and even.stride * self.divisor == factor.stride * self.window.stride:
            return even
        return even or factor.even(self.size, padded) if last else None

    def tiles(self, factor: Factor) -> Factor | None:
        """What a device reads of the dim, if every element is read by exactly one device; otherwise None."""
        read = self.outward(factor) if self.window.kernel == 1 else None
        return read if read is not None and read.is_tiling and read.stride < self.size and fit(self.size, [read]) else None

    def reads_outside(self, factor: Factor) -> bool:
        """Whether a device reads positions before the dim's first element or behind its last one."""
        there = self.outward(factor)
        return there is not None and there.overhangs(self.size)


def _nearer(even: Factor | None, there: Factor | None, stride: int, extent: int) -> Factor | None:
    """Returns the even blocks if they keep the stride, or if a device would have no window; otherwise the windows."""
    return even if even is not None and (there is None or even.stride == stride or there.leaves_out(extent)) else there
