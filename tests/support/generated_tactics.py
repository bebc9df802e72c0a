"""The tactics of generated cases, with numbers instead of names, so that they apply to any program."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

import partita as pt
from partita.compiler.api.plan import Plan

KINDS: Mapping[str, int] = {
    "tile": 6,
    "tile inside": 8,
    "padded": 6,
    "padded inside": 6,
    "tile several": 2,
    "replicate": 2,
    "replicate inside": 2,
    "held": 1,
    "held inside": 1,
    "later": 1,
    "propagate": 1,
    "name": 2,
    "data parallel": 1,
    "zero": 2,
    "widen": 2,
    "sub-axis": 3,
    "sub-axis inside": 2,
    "split": 2,
    "in turn": 3,
    "in turn inside": 2,
    "megatron": 1,
    "together": 5,
    "together inside": 5,
}
# One tactic in three has a loop where the others have an axis, or beside it: that of the first such tactic, if they differ.
LOOPS = ("t:2", "t:3", "t:4")


@dataclass(frozen=True, slots=True)
class Tactic:
    """A tactic with numbers for names; parts that do not exist or are refused are skipped. It is on a loop, if it has one."""

    kind: str
    value: int
    dim: int
    axis: int
    loop: str = field(default="", kw_only=True)

    def apply(self, plan: Plan) -> Plan:
        try:
            return self.applied(plan)
        except pt.Error as error:
            assert error.title
            return plan

    def applied(self, plan: Plan) -> Plan:
        axes, arguments, name = list(plan.mesh.axes), plan.arguments(), self.name(plan)
        on_mesh, dim = axes[self.axis % len(axes)], self.dim_of(plan, name)
        axis = self.loop or on_mesh
        match self.kind:
            case "replicate" | "replicate inside":
                return plan.replicate(name, axis)
            case "later":
                return plan.tile(name, dim, axis, propagate=False)
            case "padded" | "padded inside":
                return plan.tile(name, dim, axis, padded=True)
            case "widen":
                return plan.widen(name)
            case "sub-axis" | "sub-axis inside":
                return plan.tile(name, dim, f"{axis}.{self.value % 2}:2" if "." not in axis else axis)
            case "split":
                return plan.tile(name, dim, axis).propagate(axis, split=True)
            case "in turn" | "in turn inside":
                return plan.tile(name, dim, axis, block=1 + self.value % 3)
            case "together" | "together inside" if self.loop:
                places = (on_mesh, self.loop) if self.dim % 2 else (self.loop, on_mesh)
                return plan.tile(name, dim, places, padded=self.value % 3 == 0)
            case "propagate":
                return plan.propagate(axis)
            case "held" | "held inside":
                return plan.apply(pt.Tile({name: dim}, axis, held=True))
            case "tile several":
                chosen = {each: self.dim_of(plan, each) for each in (name, arguments[self.value % len(arguments)])}
                return plan.apply(pt.Tile(chosen, axis))
            case "name":
                return plan.name(name, dim, "R").tile("*" if self.value % 2 else name, "R", axis)
            case "data parallel":
                return plan.apply(pt.DataParallel(axis, inputs=[arguments[self.value % len(arguments)]]))
            case "zero":
                return plan.apply(pt.ZeRO(1 + self.dim % 3, axis, params=arguments[self.value % 2 :: 2]))
            case "megatron":
                other = arguments[self.dim % len(arguments)]
                return plan.apply(pt.Megatron(axis, column={name: dim}, row={other: self.dim_of(plan, other)}))
            case _:
                return plan.tile(name, dim, axis)

    def name(self, plan: Plan) -> str:
        inner = [name for name in plan.source.addresses.by_op if not name.startswith("constant")]
        outer = [*plan.arguments(), *plan.results()]
        names = inner if self.kind.endswith("inside") and inner else outer
        return names[self.value % len(names)]

    def dim_of(self, plan: Plan, name: str) -> int:
        """One of the dims; sometimes one that does not exist, so that some tactics are refused."""
        rank = len(plan.source.program.shape(next(iter(plan.source.addresses.find(name).values()))))
        return self.dim % (rank + 1) if self.value % 8 == 0 else self.dim % max(rank, 1)


_number = st.integers(0, 1 << 10)
_kinds = st.sampled_from([kind for kind, weight in KINDS.items() for _ in range(weight)])
_loops = st.sampled_from(("",) * 2 * len(LOOPS) + LOOPS)
tactics = st.builds(Tactic, _kinds, _number, _number, _number, loop=_loops)
