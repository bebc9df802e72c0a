"""Each JAX primitive has a definition, is expanded, keeps a region, or runs unpartitioned for a reason."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
from calls import CALLS, Call
from coverage_page import page
from figures import Figures
from models import Transformer, train_step
from primitive_fates import OPS_OF_OUR_OWN, Fate, maps, primitives, rows, unspoken
from root import ROOT

from partita.compiler.jax_private import ABSENT
from partita.compiler.ops.jax_expansions import equations
from partita.compiler.trace.why_whole import REASONS

PAGE = ROOT / "docs" / "coverage.md"


def test_every_primitive_is_in_a_column() -> None:
    assert unspoken() == []


def test_the_table_knows_which_versions_of_jax_have_a_primitive() -> None:
    assert set(primitives()) == {each.primitive for each in rows()} - ABSENT


def test_exactly_the_unpartitioned_primitives_have_a_reason() -> None:
    assert set(REASONS) - {each.primitive for each in rows() if each.fate is Fate.WHOLE} == set()


# Primitives that `jax.vmap` maps though they have no dim to tile: axis names, references, effects, users' code.
MAPPED = "it names|it acts on|a user's kernel|an effect|its body|a kernel for one kind|one stream|its elements"


def test_only_primitives_without_a_dim_to_map_over_run_unpartitioned(figures: Figures) -> None:
    known = primitives()
    whole = [each for each in rows() if each.fate is Fate.WHOLE]
    mapped = [each for each in whole if each.primitive in known and maps(known[each.primitive])]
    assert [each.primitive for each in mapped if not re.match(MAPPED, each.why)] == []
    figures.add("primitives that run whole", sum(each.primitive in known for each in whole), of=len(known))


ALL = """
import json, pkgutil, warnings
from importlib import import_module
import jax
from primitive_fates import primitives
warnings.simplefilter("ignore")
known = set(primitives())
for module in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda name: None):
    try:
        import_module(module.name)
    except Exception:  # of another package that is not there
        pass
print(json.dumps(sorted(set(primitives()) - known)))
"""


def test_no_jax_module_holds_other_primitives() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALL], cwd=ROOT / "tests" / "support", capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []


def programs() -> Iterator[Call]:
    """The example calls, and a training step."""
    yield from CALLS
    yield Call("step", train_step, Transformer(1).shapes())


def test_every_primitive_of_a_program_is_in_the_table() -> None:
    known = primitives()
    jaxprs = (jax.make_jaxpr(call.function)(*call.args).jaxpr for call in programs())
    met = {eqn.primitive for jaxpr in jaxprs for eqn in equations(jaxpr)}
    assert {each.name for each in met} - set(known) - OPS_OF_OUR_OWN == set()


def test_the_page_shows_the_table(golden: Callable[[Path, str], None]) -> None:
    golden(PAGE, page())
