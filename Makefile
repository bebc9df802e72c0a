# Every target makes its own virtual environment in .venv; python3 (3.11 or newer) is all that it needs.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n 2
TEXTS := find README.md docs tests compiler dialects rewrites examples -type f ! -name '*.pyc' -exec cksum {} + | sort -k 3

.PHONY: demo test check bench fuzz update clean

demo: .venv/stamp
	$(BIN)/partita demo

test: .venv/stamp
	$(PYTEST)

# The tests run with --update: what they expect must come out again byte for byte.
check: .venv/stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(TEXTS) > .venv/before
	$(PYTEST) --update
	$(TEXTS) | diff .venv/before -

bench: .venv/stamp
	$(BIN)/python -m benchmarks

# Only the tests whose examples are generated, many more of them, and other ones each time.
fuzz: .venv/stamp
	$(PYTEST) --hypothesis-profile=fuzz $$(grep -rl --include='test_*.py' hypothesis tests)

update: .venv/stamp
	$(PYTEST) --update

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis

# The stamp is written last, so an install that was cut off is begun again.
.venv/stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Partita needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
