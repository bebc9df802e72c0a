"""The runner of `.mlir` tests fails where it should."""

from pathlib import Path

import pytest
from mlir_files import check, opt

PROGRAM = """
func.func @f(%x: !array.array<f32[8]>) {
  %0 = lax.neg %x : f32[8] -> f32[8]
  func.return
}
"""


def test_opt_reads_what_the_stage_before_it_has_printed():
    assert '"lax.neg"(%x)' in opt(["--print-op-generic"], opt([], PROGRAM))


@pytest.mark.parametrize("expected", ["// CHECK: lax.tanh", "// CHECK-NOT: lax.neg", "no check at all"])
def test_an_output_that_was_not_expected_fails_and_is_shown(expected: str, tmp_path: Path):
    file = tmp_path / "wrong.mlir"
    file.write_text(expected)
    with pytest.raises(pytest.fail.Exception, match=r"%0 = lax\.neg %x"):
        check([str(file)], PROGRAM)
