"""The counter of collectives in what XLA has compiled counts each one once, and times the trips of its loops.

The texts are cut from what XLA:TPU writes. Each has groups of 4 devices.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec as P

from partita.benchmarks.hlo import collectives, counts, received

ADD = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""

SPREAD = """
%start (p: f32[2,8]) -> (f32[2,8], f32[8,8], u32[]) {
  %p = f32[2,8]{1,0:T(8,128)} parameter(0)
  %g.1 = f32[8,8]{1,0:T(8,128)} all-gather(%p), channel_id=1, replica_groups={{0,1,2,3}}, frontend_attributes={chain_id="0"}
  ROOT %c = (f32[2,8], f32[8,8], u32[]) custom-call(%g.1), custom_call_target="AsyncCollectiveStart"
}

%goes_on (p: f32[2,8], q: f32[8,8]) -> (f32[8,8], f32[8,8]) {
  %p = f32[2,8] parameter(0)
  %g.2 = f32[8,8] all-gather(%p), channel_id=1, replica_groups={{0,1,2,3}}, frontend_attributes={chain_id="0"}
  %q = f32[8,8] parameter(1)
  %d = f32[8,8] dot(%q, %q)
  ROOT %t = (f32[8,8], f32[8,8]) tuple(%d, %g.2)
}

%done (p: f32[2,8], q: f32[8,8]) -> f32[8,8] {
  %p = f32[2,8] parameter(0)
  %q = f32[8,8] parameter(1)
  %g.3 = f32[8,8] all-gather(%p), channel_id=1, replica_groups={{0,1,2,3}}, frontend_attributes={chain_id="0"}
  ROOT %c = f32[8,8] custom-call(%p, %q, %g.3), custom_call_target="AsyncCollectiveDone"
}

ENTRY %main (x: f32[2,8], y: f32[8,8]) -> f32[8,8] {
  %x = f32[2,8] parameter(0)
  %y = f32[8,8] parameter(1)
  %s = (f32[2,8], f32[8,8], u32[]) fusion(%x), kind=kCustom, calls=%start
  %f = (f32[8,8], f32[8,8]) fusion(%x, %y), kind=kOutput, calls=%goes_on
  %e = f32[8,8] get-tuple-element(%f), index=1
  ROOT %r = f32[8,8] fusion(%x, %e), kind=kCustom, calls=%done
}
"""

SCATTERED = f"""{ADD}
%all-reduce-scatter.1 (input: f32[8,8]) -> f32[2,8] {{
  %input = f32[8,8] parameter(0)
  %all-reduce = f32[8,8] all-reduce(%input), channel_id=2, replica_groups=[1,4]<=[4], to_apply=%add
  ROOT %slice = f32[2,8] dynamic-slice(%all-reduce, %i, %zero), dynamic_slice_sizes={{2,8}}
}}

ENTRY %main (x: f32[8,8]) -> f32[2,8] {{
  %x = f32[8,8] parameter(0)
  ROOT %r = f32[2,8] fusion(%x), kind=kCustom, calls=%all-reduce-scatter.1
}}
"""

STARTED = """
ENTRY %main (x: f32[2,8]) -> f32[2,8] {
  %x = f32[2,8] parameter(0)
  %s = (f32[2,8]{1,0:T(8,128)}, f32[2,8]{1,0}, u32[], u32[]) collective-permute-start(%x), source_target_pairs={{0,1},{1,2}}
  ROOT %r = f32[2,8] collective-permute-done(%s)
}
"""

SEVERAL = f"""{ADD}
ENTRY %main (x: f32[8,8], y: f32[8]) -> f32[8] {{
  %x = f32[8,8] parameter(0)
  %y = f32[8] parameter(1)
  %s = (f32[8,8], /*index=1*/f32[8]) all-reduce-start(%x, %y), replica_groups={{{{0,1,2,3}}}}, to_apply=%add
  %d = (f32[8,8], /*index=1*/f32[8]) all-reduce-done(%s)
  ROOT %r = f32[8] get-tuple-element(%d), index=1
}}
"""

LOOP = """
%test (p: (u32[], f32[2,8])) -> pred[] {
  %last = u32[] constant(8)
  %p = (u32[], f32[2,8]) parameter(0)
  %at = u32[]{:T(128)} get-tuple-element(%p), index=0
  ROOT %less = pred[] compare(%at, %last), direction=LT
}

%trip (p: (u32[], f32[2,8])) -> (u32[], f32[2,8]) {
  %p = (u32[], f32[2,8]) parameter(0)
  %two = u32[] constant(2)
  %at = u32[] get-tuple-element(%p), index=0
  %copied = u32[] copy(%at)
  %next = u32[] add(%copied, %two)
  %x = f32[2,8] get-tuple-element(%p), index=1
  %moved = f32[2,8] collective-permute(%x), source_target_pairs={{0,1},{1,2}}
  ROOT %t = (u32[], f32[2,8]) tuple(%next, %moved)
}

ENTRY %main (x: f32[2,8]) -> (u32[], f32[2,8]) {
  %x = f32[2,8] parameter(0)
  %first = u32[] constant(1)
  %copied = u32[] copy(%first)
  %t = (u32[]{:T(128)}, /*index=1*/f32[2,8]) tuple(%copied, /*index=1*/%x)
  ROOT %r = (u32[], f32[2,8]) while(%t), condition=%test, body=%trip
}
"""

WHOLE, PART = 8 * 8 * 4, 2 * 8 * 4


@pytest.mark.parametrize(
    ("text", "kind", "times", "nbytes", "asynchronous"),
    [
        pytest.param(SPREAD, "all_gather", 1, WHOLE * 3 // 4, True, id="spread over fusions"),
        pytest.param(SCATTERED, "reduce_scatter", 1, WHOLE * 3 // 4, False, id="a reduce_scatter, fused"),
        pytest.param(STARTED, "permute", 1, PART, True, id="a permute that is started"),
        pytest.param(SEVERAL, "all_reduce", 1, 2 * (WHOLE + 32) * 3 // 4, True, id="all_reduces that are combined"),
        pytest.param(LOOP, "permute", 4, 4 * PART, False, id="a loop from 1 to 8 by 2"),
    ],
)
def test_a_collective_of_a_tpu_counts_once_a_trip(text: str, kind: str, times: int, nbytes: int, asynchronous: bool) -> None:
    found = collectives(text)
    assert {name: n for name, n in counts(found).items() if n} == {kind: times}
    assert received(found) == nbytes
    assert [each.asynchronous for each in found] == [asynchronous]


def test_a_loop_whose_end_is_computed_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown trip count"):
        collectives(LOOP.replace("%last = u32[] constant(8)", "%last = u32[] custom-call(%p)"))


def test_a_loop_on_cpu_counts_by_its_trips() -> None:
    def trip(_: int, x: Any) -> Any:
        return jax.lax.ppermute(jnp.sin(x), "a", [(0, 1), (1, 0)])

    def run(x: Any) -> Any:
        return jax.lax.fori_loop(0, 5, trip, x)

    mesh: Any = Mesh(np.array(jax.devices()[:2]), ("a",))
    mapped: Any = jax.jit(jax.shard_map(run, mesh=mesh, in_specs=P("a"), out_specs=P("a"), check_vma=False))
    found = collectives(mapped.lower(jax.ShapeDtypeStruct((4, 6), jnp.float32)).compile().as_text())
    assert [(each.kind, each.times, each.bytes) for each in found] == [("permute", 5, 5 * 2 * 6 * 4)]
