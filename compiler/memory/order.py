"""The order in which XLA:CPU runs steps: each as soon as what it reads is stored, first come, first served.

So weights are transposed early, and the gradient of a weight can wait for that of an activation.

    a = f(x); b = g(a); c = h(x); d = k(b, c)   -->   a, c, b, d
"""

from .fusion import Reads, Sources
from .local_arrays import Body, Step


def in_order(body: Body, sources: Sources) -> tuple[list[Step], list[Reads]]:
    """The stored steps in the order in which they run, and the stored arrays that each reads."""
    steps = [step for step in body.steps if step.is_stored]
    reads = {step: sources.read(step) for step in steps}
    makers = {array: step for step in steps for array in step.makes}
    waits: dict[Step, int] = {}
    users: dict[Step, list[Step]] = {}
    for step in steps:
        needs = {makers[array] for array in reads[step] if array in makers}
        waits[step] = len(needs)
        for each in needs:
            users.setdefault(each, []).append(step)
    for each in users.values():
        # XLA adds the transposed copies of operands later, so they come after the other uses.
        each.sort(key=lambda step: step.name == TRANSPOSED)
    ready = [step for step in steps if not waits[step]]
    for step in ready:
        for user in users.get(step, ()):
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    assert len(ready) == len(steps), "a step reads only what an earlier one makes"
    return ready, [reads[step] for step in ready]


TRANSPOSED = "transposed"
"""The name of steps that copy an operand into the order of dims that a product needs."""
