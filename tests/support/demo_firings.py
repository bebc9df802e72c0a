"""How often each law fires while the training step of the demo is planned and lowered, in a process that knows nothing yet."""

from __future__ import annotations

import json

from rich.console import Console

from partita.examples import demo, gpt
from partita.rewrites.rules.compile import FIRED


def firings() -> dict[str, int]:
    """The laws that fire. Of questions that are alike, only the first one is counted."""
    params = gpt.init(demo.CONFIG)
    demo.partitioned(params, gpt.OPTIMIZER.init(params), Console(quiet=True))[-1].spmd()
    return dict(FIRED)


if __name__ == "__main__":
    print(json.dumps(firings()))
