# Every target makes its own virtual environment in .venv; python3 (3.11 or newer) is all that it needs.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
# A worker has its part of the files, so that what a file keeps between its tests is made once; who is done helps the others.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(if $(SEED),--shuffle=$(SEED))
TEXTS := find README.md docs tests compiler dialects rewrites examples -type f ! -name '*.pyc' -exec cksum {} + | sort -k 3

.PHONY: demo test lint check texts bench fuzz update page pictures clean

demo: .venv/stamp
	$(BIN)/partita demo

# In another order, with other workers: make test SEED=7 WORKERS=4
test: .venv/stamp
	$(PYTEST)

lint: .venv/stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

check:
	.ci/run

# Checksums of all that the tests compare with, which they must leave as it is.
texts:
	@$(TEXTS)

bench: .venv/stamp
	$(BIN)/python -m benchmarks

# Only the tests whose examples are generated, many more of them, and other ones each time, by the code generator of users.
fuzz: .venv/stamp
	XLA_FLAGS=--xla_cpu_use_fusion_emitters=true $(PYTEST) --hypothesis-profile=fuzz $$(grep -rl --include='test_*.py' hypothesis tests)

update: .venv/stamp
	$(PYTEST) --update

# The page of `plan.html`, from its sources in `page/`. Needs Node and npm; everybody else has the page that is built.
page:
	cd page && npm ci && npm run build

# The pictures of the documentation: a session of `partita shell`, and pages by the Chromium of the machine.
pictures: .venv/stamp
	COLUMNS=100 $(BIN)/partita shell examples/llama.py:plan --record docs/pictures/shell.svg < docs/pictures/tactics.txt
	$(BIN)/python -m docs.pictures.make

clean:
	rm -rf .venv build dist .pytest_cache .jax_cache .ruff_cache .hypothesis

# The stamp is written last, so an install that was cut off is begun again.
.venv/stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Partita needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv --clear .venv
	@echo "installing Partita and what it needs into .venv: about half a minute"
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
