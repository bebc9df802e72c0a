"""The set-up of every test: eight host devices, strict promotion, and one option that renews expected texts.

JAX reads all of it from the environment when it is first imported, so it is set here, before any test module loads.
"""

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import expected_texts
import figures as sums
import hypothesis
import pytest
import skips
from expected_texts import golden
from figures import figures
from hypothesis.internal.conjecture import providers
from mlir_files import pytest_collect_file
from shuffled import pytest_collection_modifyitems
from skips import pytest_sessionfinish

__all__ = [
    "figures",
    "golden",
    "pytest_addoption",
    "pytest_collect_file",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_unconfigure",
]

CACHED = type(cache(len))
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

# XLA compiles a program once: for all workers and processes of a run, and for the next run.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

# Python compiles a file once too, those of the tests and of the commands that they run, even if the environment says otherwise.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# With Python's own thresholds the collector takes a tenth of the time: it walks the same programs again and again. With these
# it walks new objects, and at the end of a file all that the file made.
gc.set_threshold(200_000, 50, 1_000)

# `make test` tries the same examples everywhere; `make fuzz` draws new ones.
hypothesis.settings.register_profile("default", deadline=None, derandomize=True)
hypothesis.settings.register_profile("fuzz", deadline=None, derandomize=False, max_examples=2000)
hypothesis.settings.load_profile("default")
# Examples do not depend on the numbers that stand in the modules that a process happens to have loaded.
providers._get_local_constants = providers.Constants  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]


def pytest_addoption(parser: pytest.Parser) -> None:
    skips.pytest_addoption(parser)
    parser.addoption("--update", action="store_true", help="write the expected texts anew instead of comparing them")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in another order")


def pytest_configure(config: pytest.Config) -> None:
    """XLA's options: a test runs a program once, so it is compiled as fast as it can be.

    Commands of documents are compiled as for users, and `make fuzz` uses the code generator that users have. Which options XLA
    has depends on the version of JAX, so JAX is imported for them, but not before all that it reads is set.
    """
    from partita.compiler import gc_pause
    from partita.compiler.jax_private import QUICK, lower_in_one_context

    # The time after which a collective that some device never joins ends the process.
    options: dict[str, bool | int] = {"xla_cpu_collective_call_terminate_timeout_seconds": 60, **QUICK}
    if config.getoption("--hypothesis-profile") == "fuzz":
        options.pop("xla_cpu_use_fusion_emitters", None)
    # Said once: a worker inherits it, and JAX's cache takes the flags as part of a program's key.
    for name, setting in options.items():
        if name not in os.environ.get("XLA_FLAGS", ""):
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --{name}={str(setting).lower()}".strip()
    lower_in_one_context()
    # Old programs are freed at the end of a file.
    gc_pause.MOST_UNWALKED *= 5
    expected_texts.check_update(config)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for each in (sums, expected_texts):
        each.summarize(terminalreporter)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """After pytest's last look for garbage, Python exits without walking all that the tests hold, which takes seconds."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def caches_of_a_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a file keeps between its tests is freed after the last one. Python's collector no longer walks what is left then.

    That is mostly what JAX and Partita remember of the programs; a walk of all of it takes seconds after some hundred files.
    """
    module: ModuleType = cast(Any, request).module
    yield
    if request.config.getoption("--shuffle") is None:
        for each in vars(module).values():
            if isinstance(each, CACHED) and each.__module__ == module.__name__:
                each.cache_clear()
        gc.collect()
        gc.freeze()
