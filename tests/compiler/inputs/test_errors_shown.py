"""How Python and IPython show an error: its text once, and in IPython below the user's own lines only."""

import subprocess
import sys
from textwrap import dedent

PLAN = dedent("""\
    import numpy as np
    import partita as pt
    plan = pt.plan(lambda x: x + 1, pt.Mesh(data=4), np.ones((8, 8), np.float32))
    """)
TILED = dedent("""\
    def tiled(plan):
        return plan.tile("y", 0, "data")

    plan.apply(tiled)
    """)


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


def test_a_traceback_ends_with_the_public_name_and_the_title():
    lines = run(PLAN + TILED).stderr.splitlines()
    assert lines[-3] == "partita.Error: no value is named `y`"
    assert lines[-2].startswith("help: ")


def test_ipython_shows_the_user_s_lines_and_the_text():
    shell = "from IPython.core.interactiveshell import InteractiveShell as Shell\nshell = Shell.instance(colors='nocolor')\n"
    shown = run(shell + f"shell.run_cell({PLAN!r})\nshell.run_cell({TILED!r})").stdout
    where = [line for line in shown.splitlines() if "File" in line]
    assert [each.split(", ")[1:] for each in where] == [["line 4", "in <module>"], ["line 2", "in tiled"]]
    assert "\nerror: no value is named `y`\nhelp: there are 2: `x`, `result`\n" in shown
    assert shown.count("error:") == 1
