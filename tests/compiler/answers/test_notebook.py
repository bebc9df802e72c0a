"""In a notebook plans, collectives, counts and layouts are HTML, in which each mesh axis has one colour."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import jax.numpy as jnp
import pytest
from models import chain

import partita as pt
from partita.compiler.views.colours import PALETTE, coloured_html

MESH = pt.Mesh(data=4, model=2)
ARRAYS = [jnp.ones(shape) for shape in ((256, 8), (8, 16), (16, 8))]
DATA, MODEL = (f'<b style="color: {colour}">' for colour in PALETTE[:2])


@pytest.fixture(scope="module")
def plan() -> pt.Plan:
    return pt.plan(chain, MESH, *ARRAYS).tile("x", 0, "data").tile("w1", 1, "model")


def shown(what: object) -> str:
    return getattr(what, "_repr_html_")()  # noqa: B009


def test_an_axis_has_the_colour_of_its_place_in_the_mesh() -> None:
    assert coloured_html("f32[model*2, data.0:2*4] & data=4, a/data", ("data", "model")) == (
        f"f32[{MODEL}model</b>*2, {DATA}data.0:2</b>*4] &amp; {DATA}data</b>=4, a/data"
    )
    assert coloured_html("<script>", ()) == "&lt;script&gt;"


def test_a_plan_is_its_text_with_what_is_open_folded(plan: pt.Plan) -> None:
    text = shown(plan)
    assert f"{DATA}data</b>=4, {MODEL}model</b>=2" in text
    assert "<details><summary>redundant" in text and "a device receives" in text


def test_layouts_and_collectives_have_the_colours_also_if_all_are_asked_for(plan: pt.Plan) -> None:
    for layouts in (plan.layout(), plan.layout().all()):
        assert f"f32[{DATA}data</b>*64, 8]" in shown(layouts)
    for found in (plan.collectives(), plan.collectives().all(), plan.collectives()[0], plan.explain("w1"), plan.ranges()):
        assert f"{MODEL}model</b>" in shown(found)


def test_lines_that_follow_each_other_are_one_paragraph(plan: pt.Plan) -> None:
    before = pt.plan(chain, MESH, *ARRAYS)
    assert shown(before.tile("x", 0, "data").diff(before)).count("<pre") == 1
    assert shown(plan.explain(["w1", "w2"])).count("<pre") == 1


def test_counts_are_a_table_with_a_row_for_each_branch(plan: pt.Plan) -> None:
    text = shown(plan.counts())
    assert '<td style="text-align: left">in one call</td>' in text and "<th>all_reduce</th>" in text


def test_the_report_is_shown_below_its_cell(plan: pt.Plan) -> None:
    page = plan.show(height=500)
    assert "plan.html" in repr(page) and "height: 500px" in shown(page)
    assert shown(page).startswith('<iframe srcdoc="&lt;!doctype html&gt;')
