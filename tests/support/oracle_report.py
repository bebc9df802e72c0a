"""What plans of small programs cost beside what they could cost, and what the optimum does otherwise.

    python tests/support/oracle_report.py 100      the shares of 100 draws of each kind, and what they miss, by kinds

The shares are given with the threshold as it is and at 0.

Of the draws of a kind, half are dominated by bytes and half by flops: a device then computes longer than it receives. All of
them receive something; the others leave nothing to decide.
"""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

if __name__ == "__main__":
    os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"}

from oracle import Choice, Oracle
from oracle_moves import TIE
from oracle_ways import Way
from small_programs import KINDS, Draw, Kind, drawn

from partita.compiler.api.plan import Plan
from partita.dialects.definitions.flops import flops
from partita.rewrites.decide import price
from partita.rewrites.program.program import Node

ENOUGH = 1.25
"""How many times the optimum a plan may cost."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What the plan of a draw costs, the least that it could cost, and the kind and text of what the optimum does otherwise."""

    draw: Draw
    cost: float
    optimum: float
    kind: str
    text: str

    @property
    def ratio(self) -> float:
        """How many times the optimum the plan costs. Collectives only count between equals, and not here."""
        if self.cost - self.optimum < 0.5:
            return 1.0
        return self.cost / self.optimum if self.optimum >= 1 else float("inf")


def compared(kind: Kind, number: int, first: int = 0) -> list[Compared]:
    """So many draws, from a seed on: those with an even seed dominated by bytes, those with an odd one by flops."""
    found = list[Compared]()
    for heavy in (False, True):
        draws = (drawn(kind, first + 2 * n + heavy) for n in count())
        mine = (each for draw in draws if (each := compare(draw)) is not None)
        found += [next(mine) for _ in range(number // 2)]
    return found


def compare(draw: Draw) -> Compared | None:
    """Compares a plan with the optimum; None if it receives nothing, or is not dominated by what it was drawn for."""
    plan, chip = draw.plan, draw.plan.mesh.chip
    try:
        received = float(plan.decisions.price.bytes)
    except Exception as error:
        return Compared(draw, float("inf"), 1, "an exception", f"{draw}\n    {type(error).__name__}: {error}")
    if not received or (computed(plan) > received * chip.flops_per_second / chip.bytes_per_second) != draw.is_heavy:
        return None
    oracle = Oracle(plan)
    assert not oracle.foreign, f"an op runs in a way that the oracle does not know: {draw}"
    told = received + TIE * plan.decisions.price.collectives
    assert abs(told - oracle.plan_moves) < TIE / 2, f"the plan's price is {told:,}, here {oracle.plan_moves:,}: {draw}"
    optimum, chosen = oracle.best
    changes = dict(changed(oracle, chosen))
    kind = " + ".join(sorted({f"{family(node)}: {change}" for node, change in changes.values()})) or "nothing"
    return Compared(draw, oracle.plan_cost, optimum, kind, "\n".join(text(draw, plan, oracle, chosen)))


def computed(plan: Plan) -> int:
    """The flops of one device."""
    nodes = zip(plan.source.program.nodes, plan.decisions.placements.nodes, strict=True)
    local = ((node, *(tuple(each.local_shape for each in side) for side in (at.wanted, at.produced))) for node, at in nodes)
    return sum(flops(node.op_name, node.params, ins, outs) or 0 for node, ins, outs in local)


# --- what the optimum does otherwise ------------------------------------------------------------------------------------------


def changed(oracle: Oracle, chosen: Choice) -> Iterator[tuple[int, tuple[Node, str]]]:
    """The ops that run otherwise in the optimum, and how."""
    in_conflict = {number for number, _, _ in oracle.placements.table.conflicts}
    for node, own in zip(oracle.program.nodes, oracle.decided, strict=True):
        then = oracle.ways[node.number][chosen[node.number]]
        if (own.wanted, own.made) != (then.wanted, then.made):
            conflict = "in conflict, " if node.number in in_conflict else ""
            yield node.number, (node, conflict + ", ".join(sorted(difference(own, then))))


def difference(own: Way, then: Way) -> set[str]:
    """How one way of an op differs from another one, axis by axis."""
    here, there = ({factor.axis: (index, factor) for index, factor in way.placed.placement} for way in (own, then))
    waits, waited = ({each.axis for each in way.sums} for way in (then, own))
    found = {"a sum waits" for axis in waits if axis not in waited} | {"no sum waits" for axis in waited if axis not in waits}
    for axis in {*here, *there}:
        match here.get(axis), there.get(axis):
            case (_, None):
                found |= set() if axis in waits else {"whole"}
            case (None, _):
                found.add("tiled")
            case ((index, factor), (other, stride)) if (index, factor) != (other, stride):
                found |= {"another index" if index != other else "another stride"}
            case _:
                pass
    return found or {"a sum waits in other operands"}


def family(node: Node) -> str:
    """What kind of op it is."""
    if node.op_name.startswith("reduce"):
        return "reduction"
    named = ("dot_general", "gather", "scatter_add", "broadcast_in_dim", "transpose", "cumsum")
    return node.op_name if node.op_name in named else "elementwise"


def text(draw: Draw, plan: Plan, oracle: Oracle, chosen: Choice) -> Iterator[str]:
    """The program, its tactics, and how each op runs: in the plan, and in the optimum where that is otherwise."""
    optimum, changes = oracle.best[0], dict(changed(oracle, chosen))
    yield str(draw)
    yield f"  tactics: {'; '.join(action.text for action in plan.actions)}"
    yield f"  the plan costs {oracle.plan_cost:,.1f}, the optimum {optimum:,.1f}"
    for node, own in zip(oracle.program.nodes, oracle.decided, strict=True):
        indices = ", ".join(f"{name}: {info.extent}" for name, info in zip("ijklmnopq", node.signature.indices, strict=False))
        reads = ", ".join(str(oracle.placements.with_sums(value)) for value in node.operands)
        line = f"    {node.op_name}#{node.number} ({indices}) reads {reads}: {own}"
        if node.number in changes:
            line += f"   -->   {oracle.ways[node.number][chosen[node.number]]}   ({changes[node.number][1]})"
        yield line


# --- in all -------------------------------------------------------------------------------------------------------------------


def shares(found: Sequence[Compared]) -> str:
    """The share of plans that cost what the optimum costs, that which costs at most `ENOUGH` times as much, and the worst."""
    ratios = [each.ratio for each in found]
    best, near = (sum(ratio <= most for ratio in ratios) for most in (1, ENOUGH))
    return f"{best} of {len(found)} at the optimum, {near} at most {ENOUGH} times it, the worst {max(ratios):,.2f} times"


def missed(found: Sequence[Compared], most: int) -> Iterator[str]:
    """What is missed, by kinds, with the worst draws of each."""
    kinds: defaultdict[str, list[Compared]] = defaultdict(list)
    for each in sorted(found, key=lambda each: -each.ratio):
        if each.ratio > 1:
            kinds[each.kind].append(each)
    ops = Counter(change for kind, every in kinds.items() for change in kind.split(" + ") for _ in every)
    yield "Ops that run otherwise in the optimum, and in how many draws:"
    yield from (f"{number:4d}  {change}" for change, number in ops.most_common())
    for kind, every in sorted(kinds.items(), key=lambda item: -len(item[1])):
        yield f"\n=== {len(every)} of {len(found)}: {kind}"
        yield from (f"\n{each.ratio:,.2f} times: {each.text}" for each in every[:most])


def main(number: int) -> None:
    every = list[Compared]()
    for kind in KINDS:
        with_start = compared(kind, number)
        before, price.START = price.START, 0
        found = compared(kind, number)
        price.START = before
        print(f"{kind}: {shares(with_start)}")
        print(f"    with the threshold at 0: {shares(found)}", flush=True)
        every += found
    print("\n".join(missed(every, 4)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
