"""The pictures of the documentation: `make pictures`, or `python -m docs.pictures.make`.

The report is that of the demo's training step with all of its tactics, for which only shapes are needed.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp

import partita as pt
from partita.compiler.api.plan import Plan
from partita.examples import demo, gpt
from partita.tests.support.browser import browser

HERE = Path(__file__).parent
CONFIG = gpt.Config(vocabulary=32_768, length=512, layers=12, width=512, heads=8)


def plan() -> Plan:
    """The plan of the demo, for a larger model."""
    params = jax.eval_shape(lambda: gpt.init(CONFIG))
    state = jax.eval_shape(gpt.OPTIMIZER.init, params)
    tokens = jax.ShapeDtypeStruct((64, CONFIG.length), jnp.int32)
    return pt.plan(gpt.train_step, demo.MESH, params, state, {"x": tokens, "y": tokens}).apply(*demo.TACTICS.values())


def report(made: Plan, target: Path) -> None:
    """The page of a plan, with a collective chosen, at 1.3 times its size."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        path = Path(folder) / "plan.html"
        made.html(path)
        page = chromium.new_page(viewport={"width": 1280, "height": 800}, device_scale_factor=1.3, color_scheme="light")
        page.goto(path.as_uri())
        page.get_by_role("tab", name="Collectives").click()
        page.get_by_label("Search the collectives").fill("all_gather blocks/0/w1 forward")
        page.locator("tr[data-row]").click()
        page.get_by_role("tab", name="Program").click()
        page.screenshot(path=target)


if __name__ == "__main__":
    report(plan(), HERE / "report.png")
