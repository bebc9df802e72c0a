"""How long `plan.html` takes, how large its page is, and how fast the page answers in Chromium.

    python -m benchmarks.pages             # the table
    python -m benchmarks.pages 96          # one measurement, as JSON

The program is the GPT-3-shaped training step, with data parallelism, Megatron and ZeRO-3. Each measurement runs in a process
of its own; `plan.html` is measured in CPU seconds. The page is measured in headless Chromium without a GPU: from its load to
its first drawing, then the median time from an input to the drawing that follows it, and the median time of a frame while the
program, with its forward pass unfolded, is dragged and enlarged.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from playwright.sync_api import Page
from rich.progress import track

from . import fresh
from .gpt3 import MESH, shapes, train_step
from .report import Table, machine

ANSWERS = {"step": "slider", "fold": "fold", "zoom": "zoom", "pan": "pan", "search": "search"}
LAYERS = (2, 12, 32, 96)
REPEATS = 5

# The time from a call until the next but one frame: what the call changed is drawn then.
DRAWN = """(act) => new Promise((done) => {
  const start = performance.now();
  new Function(act)();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
})"""
SLIDE = "const s = document.querySelector('input[type=range]'); s.value = %d; s.dispatchEvent(new Event('input'));"
TOGGLE = "document.querySelector(\"button[aria-label$='old %s']\").click();"
SEARCH = "const s = document.querySelector('input[type=search]'); s.value = '%s'; s.dispatchEvent(new Event('input'));"

# Sixty frames, with an input in each: their times.
FRAMES = """(act) => new Promise((done) => {
  const svg = document.querySelector(".canvas > svg"), { x, y, width, height } = svg.getBoundingClientRect();
  const input = new Function("svg", "x", "y", "frame", act), times = [];
  let last = 0;
  const next = (now) => {
    if (last) times.push(now - last);
    last = now;
    if (times.length === 60) return done(times);
    input(svg, x + width / 2, y + height / 2, times.length);
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})"""
ZOOM = """svg.dispatchEvent(new WheelEvent("wheel", {
    deltaY: frame % 20 < 10 ? -30 : 30, clientX: x, clientY: y, bubbles: true, cancelable: true }))"""
PAN = """const at = { clientX: x + 3 * frame, clientY: y + 2 * frame, bubbles: true, cancelable: true, view: window };
  if (!frame) svg.dispatchEvent(new MouseEvent("mousedown", at));
  window.dispatchEvent(new MouseEvent(frame < 59 ? "mousemove" : "mouseup", at));"""


def measured(layers: int) -> dict[str, float]:
    import partita as pt
    from partita.tests.support.browser import browser
    from partita.tests.support.strategies import strategy

    plan = pt.plan(train_step, pt.Mesh(MESH), *shapes(layers)).apply(*strategy("BP+MP+Z3"))
    plan.counts()
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        path = Path(folder) / "plan.html"
        start = process_time()
        plan.html(path)
        figures = {"ops": len(plan.source.program.nodes), "html": process_time() - start, "bytes": path.stat().st_size}
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        start = perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector(".node")
        return {**figures, "open": perf_counter() - start, **answers(page)}


def answers(page: Page) -> dict[str, float]:
    """Milliseconds from an input to what it draws."""
    slides = [page.evaluate(DRAWN, SLIDE % (number % 4)) for number in range(2 * REPEATS)]
    folds = [page.evaluate(DRAWN, TOGGLE % "forward") for _ in range(2 * REPEATS)]
    page.evaluate(DRAWN, TOGGLE % "forward")
    frames = {name: median(page.evaluate(FRAMES, act)) for name, act in (("zoom", ZOOM), ("pan", PAN))}
    page.get_by_role("tab", name="Collectives").click()
    finds = [page.evaluate(DRAWN, SEARCH % text) for text in ("w1", "all_gather", "models.py", "zero", "")]
    return {"step": median(slides), "fold": median(folds), **frames, "search": median(finds)}


def tables() -> list[Table]:
    runs = [(layers, fresh.measure("pages", layers)) for layers in track(LAYERS, description="pages")]
    rows = [
        [layers, int(f["ops"]), f["html"], f["bytes"] / 1e6, 1000 * f["open"], *(f[each] for each in ANSWERS)]
        for layers, f in runs
    ]
    columns = ["layers", "ops", "html, s", "page, MB", "open, ms", *(f"{name}, ms" for name in ANSWERS.values())]
    notes = [
        "html is the CPU seconds of `plan.html` alone: the four steps with their collectives, reasons, memory and kernels.",
        "slider, fold and search are from an input to the next drawing, which takes two frames of 16 ms at least.",
        "zoom and pan are the time of a frame, 16.7 ms if none is late.",
        machine(),
    ]
    return [Table("pages", "The page of a GPT-3-shaped training step with three tactics", columns, rows, notes)]


if __name__ == "__main__":
    match sys.argv[1:]:
        case [layers]:
            fresh.answer(**measured(int(layers)))
        case []:
            for table in tables():
                table.show()
                table.write()
        case _:
            sys.exit(__doc__)
