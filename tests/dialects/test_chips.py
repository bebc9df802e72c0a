"""The chips that a mesh may name: their speeds stand once in the code, and once in the documentation."""

import ast

from root import ROOT

from partita.dialects.chips import CHIPS, Chip

ROOMS = "dialects", "rewrites", "compiler"


def row(chip: Chip) -> list[str]:
    """A row of the table in the documentation."""
    rates = (chip.flops_per_second / 1e12, chip.memory / 1e9, chip.memory_bytes_per_second / 1e12)
    return [chip.name, *(f"{each:g}" for each in (*rates, chip.bytes_per_second / 1e9, chip.slow_bytes_per_second / 1e9))]


def test_the_documentation_lists_the_chips() -> None:
    _, rest = (ROOT / "docs/plans.md").read_text().split("| chip |")
    table = rest.split("\n\n")[0].splitlines()[2:]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in table] == [row(chip) for chip in CHIPS.values()]


def test_a_rate_stands_in_no_other_file() -> None:
    """Nor does any other number as large as one."""
    found = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and 1e9 <= node.value < float("inf")
    }
    assert found == {"dialects/chips.py"}
