"""How long `plan.html` takes, how large its page is, and how fast the page answers in Chromium.

    python -m benchmarks.pages             # the table
    python -m benchmarks.pages 96          # one measurement, as JSON

The program is the GPT-3-shaped training step, with data parallelism, Megatron and ZeRO-3. Each measurement runs in a process
of its own; `plan.html` is measured in CPU seconds. The page is measured in headless Chromium without a GPU: from its load to
its first drawing, then the median time from an input to the drawing that follows it.
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
    page.get_by_role("tab", name="Collectives").click()
    finds = [page.evaluate(DRAWN, SEARCH % text) for text in ("w1", "all_gather", "models.py", "zero", "")]
    return {"step": median(slides), "fold": median(folds), "search": median(finds)}


def tables() -> list[Table]:
    runs = [(layers, fresh.measure("pages", layers)) for layers in track(LAYERS, description="pages")]
    rows = [
        [layers, int(f["ops"]), f["html"], f["bytes"] / 1e6, 1000 * f["open"], f["step"], f["fold"], f["search"]]
        for layers, f in runs
    ]
    columns = ["layers", "ops", "html, s", "page, MB", "open, ms", "slider, ms", "fold, ms", "search, ms"]
    notes = [
        "html is the CPU seconds of `plan.html` alone: the four steps with their collectives, reasons, memory and kernels.",
        "slider, fold and search are from an input to the next drawing, which takes two frames of 16 ms at least.",
        machine(),
    ]
    return [Table("pages", "The page of a GPT-3-shaped training step with three tactics", columns, rows, notes)]


if __name__ == "__main__":
    match sys.argv[1:]:
        case [layers]:
            fresh.answer(**measured(int(layers)))
        case _:
            for table in tables():
                table.show()
                table.write()
