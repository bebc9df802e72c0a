"""About how long a device receives and computes: the law of choices that are made by time.

4,500,000 bytes over data, and as many over pod, which is slow   -->   0.1 ms + 0.72 ms
"""

from .collectives import bytes_by_axes
from .state import State
from .work import flops_per_device

FLOPS_PER_SECOND = 197e12
BYTES_PER_SECOND = 45e9
"""Of one TPU v5e: what it computes, and what it receives over one link. They say how many flops are worth a byte."""

SLOW_BYTES_PER_SECOND = 25e9 / 4
"""What each of the four chips of a host receives over the network between pods, which they share."""


def seconds(plan: State) -> float:
    """About how long a TPU v5e receives and computes in a call; bytes over slow axes of the mesh take longer."""
    sizes = bytes_by_axes(plan).items()
    received = sum(size / (SLOW_BYTES_PER_SECOND if plan.mesh.is_slow(axes) else BYTES_PER_SECOND) for axes, size in sizes)
    return received + flops_per_device(plan).known / FLOPS_PER_SECOND
