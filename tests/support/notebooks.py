"""Runs a notebook's cells in IPython, as Jupyter does, and stores what they show.

The shell runs in a process of its own: `python notebooks.py NOTEBOOK` prints the notebook with its outputs. An error ends it.
"""

# nbformat and IPython have few types.
# pyright: basic

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


def renewed(path: Path) -> str:
    """The notebook's text, with what its cells show now."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | {"COLUMNS": "100"}
    done = subprocess.run([sys.executable, __file__, str(path)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def shown(shell: Any, number: int, source: str) -> list[Any]:
    """The outputs of a cell: what it prints, what it displays, and the value of its last line."""
    with capture_output() as captured:
        result = shell.run_cell(source, store_history=True)
    if not result.success:
        raise SystemExit(f"cell {number}: {captured.stdout}")
    assert not captured.stderr, captured.stderr
    printed = captured.stdout.rpartition(f"Out[{number}]: ")[0] if result.result is not None else captured.stdout
    outputs = [nbformat.v4.new_output("stream", name="stdout", text=printed)] if printed else []
    if result.result is not None:
        data, _ = shell.display_formatter.format(result.result)
        outputs.append(nbformat.v4.new_output("execute_result", data=data, execution_count=number))
    return outputs


def main(path: str) -> None:
    notebook: Any = nbformat.read(path, as_version=4)
    shell = InteractiveShell.instance(colors="nocolor")
    for number, cell in enumerate((each for each in notebook.cells if each.cell_type == "code"), 1):
        cell.outputs, cell.execution_count = shown(shell, number, cell.source), number
    nbformat.validate(notebook)
    print(nbformat.writes(notebook))


if __name__ == "__main__":
    main(sys.argv[1])
