"""The clock that runs a compiled schedule gives the times that small schedules have by hand."""

import pytest

from partita.benchmarks.hlo import Collective, End, Loop, Start, Step, Work, schedule
from partita.benchmarks.timeline import BYTES_PER_SECOND, CYCLES_PER_SECOND, SECONDS_PER_START, timeline

ADD = "%add (a: f32[], b: f32[]) -> f32[] {\n  ROOT %sum = f32[] add(%a, %b)\n}\n"
CONFIG = 'backend_config={{"window_config":{{"estimated_cycles":"{}"}}}}'


def work(seconds: float) -> Step:
    return Work(round(seconds * CYCLES_PER_SECOND))


def gather(key: str, seconds: float) -> Step:
    return Start(key, Collective("all_gather", 1, (seconds - SECONDS_PER_START) * BYTES_PER_SECOND))


SYNCHRONOUS = [work(2), gather("x", 3), End("x"), work(1)]
ASYNCHRONOUS = [gather("x", 3), work(2), End("x"), work(1)]
HIDDEN = [gather("x", 3), work(4), End("x")]
TWO = [gather("x", 3), gather("y", 3), work(4), End("x"), End("y")]
LATE = [gather("x", 3), work(1), gather("y", 1), End("y"), End("x")]


@pytest.mark.parametrize(
    ("steps", "compute", "hidden", "exposed"),
    [
        pytest.param(SYNCHRONOUS, 3, 0, 3, id="synchronous"),
        pytest.param(ASYNCHRONOUS, 3, 2, 1, id="asynchronous, in part"),
        pytest.param(HIDDEN, 4, 3, 0, id="asynchronous, wholly"),
        pytest.param(TWO, 4, 4, 2, id="two on one link"),
        pytest.param(LATE, 1, 1, 3, id="one that waits for the link"),
        pytest.param([Loop(10, ASYNCHRONOUS)], 30, 20, 10, id="a loop by its trips"),
        pytest.param([Loop(2, [Loop(5, SYNCHRONOUS)]), work(1)], 31, 0, 30, id="a loop in a loop"),
        pytest.param([Loop(0, ASYNCHRONOUS)], 0, 0, 0, id="a loop that does not run"),
    ],
)
def test_a_schedule_takes_the_time_that_it_has_by_hand(
    steps: list[Step], compute: float, hidden: float, exposed: float
) -> None:
    found = timeline(steps)
    assert (found.compute, found.hidden, found.exposed) == pytest.approx((compute, hidden, exposed))
    assert found.step == pytest.approx(compute + exposed)


def test_what_goes_on_in_a_fusion_hides_a_collective_that_is_spread_over_several() -> None:
    text = f"""
%start (p: f32[2,8]) -> (f32[2,8], f32[8,8], u32[]) {{
  %g.1 = f32[8,8] all-gather(%p), replica_groups={{{{0,1,2,3}}}}, frontend_attributes={{chain_id="0"}}
  ROOT %c = (f32[2,8], f32[8,8], u32[]) custom-call(%g.1), custom_call_target="AsyncCollectiveStart"
}}

%goes_on (p: f32[2,8], q: f32[8,8]) -> (f32[8,8], f32[8,8]) {{
  %g.2 = f32[8,8] all-gather(%p), replica_groups={{{{0,1,2,3}}}}, frontend_attributes={{chain_id="0"}}
  ROOT %d = f32[8,8] dot(%q, %q), {CONFIG.format(999)}
}}

%done (p: f32[2,8], q: f32[8,8]) -> f32[8,8] {{
  %g.3 = f32[8,8] all-gather(%p), replica_groups={{{{0,1,2,3}}}}, frontend_attributes={{chain_id="0"}}
  ROOT %c = f32[8,8] custom-call(%p, %q, %g.3), custom_call_target="AsyncCollectiveDone"
}}

ENTRY %main (x: f32[2,8], y: f32[8,8]) -> f32[8,8] {{
  %s = (f32[2,8], f32[8,8], u32[]) fusion(%x), calls=%start
  %f = (f32[8,8], f32[8,8]) fusion(%x, %y), calls=%goes_on, {CONFIG.format(1000)}
  ROOT %r = f32[8,8] fusion(%x, %e), calls=%done, {CONFIG.format(10)}
}}
"""
    moved = Collective("all_gather", 1, 192.0, True, "f32[8,8]")
    assert schedule(text) == [Start("0", moved), Work(1000), Work(10), End("0")]


def test_one_that_is_started_ends_where_it_is_done() -> None:
    text = f"""{ADD}
ENTRY %main (x: f32[8], y: f32[8]) -> f32[8] {{
  %s = f32[8] all-reduce-start(%x), replica_groups={{{{0,1,2,3}}}}, to_apply=%add
  %w = f32[8] multiply(%y, %y), {CONFIG.format(500)}
  %d = f32[8] all-reduce-done(%s)
  ROOT %r = f32[8] all-reduce(%w), replica_groups={{{{0,1,2,3}}}}, to_apply=%add
}}
"""
    moved = Collective("all_reduce", 1, 48.0, True, "f32[8]")
    alone = Start("r", moved._replace(asynchronous=False))
    assert schedule(text) == [Start("s", moved), Work(500), End("s"), alone, End("r")]
