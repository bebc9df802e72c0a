"""With `--no-skips`, as `make extras` runs the tests, one that is skipped fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from root import ROOT

RUN = "import sys, pytest, skips; sys.exit(pytest.main(sys.argv[1:], plugins=[skips]))"
SKIPPED = {
    "nothing": ("def test_a(): pass", 0),
    "a test": ("import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('no reason')", 1),
    "a file": ("import pytest\npytest.importorskip('no_such_module')", 1),
    "an expected failure": ("import pytest\n@pytest.mark.xfail\ndef test_a(): assert False", 0),
}


@pytest.mark.parametrize("what", SKIPPED)
def test_a_run_without_skips_fails_where_one_is_skipped(what: str, tmp_path: Path) -> None:
    text, fails = SKIPPED[what]
    (tmp_path / "test_it.py").write_text(text)
    (tmp_path / "test_other.py").write_text("def test_c(): pass")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests" / "support"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for option, code in (("--no-skips", fails), ("--quiet", 0)):
        done = subprocess.run(
            [sys.executable, "-c", RUN, option, str(tmp_path)], cwd=tmp_path, env=environment, capture_output=True
        )
        assert done.returncode == code, done.stdout
