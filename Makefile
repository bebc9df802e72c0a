# Every target makes its own virtual environment; python3 (3.11 or newer) is all that it needs. It is .venv, and another one for
# each Python or JAX that is asked for:
#     make test PYTHON=python3.13     in .venv-3.13, with the newest JAX that Partita supports
#     make test JAX=0.13              in .venv-3.13-jax-0.13, if 3.13 is the newest Python here
ifdef JAX
PYTHON ?= $(or $(shell .ci/python --beside python3),python3)
endif
PYTHON ?= python3
ifeq ($(PYTHON)$(JAX),python3)
VENV := .venv
else
override PYTHON := $(or $(shell .ci/python '$(PYTHON)'),$(error $(PYTHON) is neither on the PATH nor a version of pyenv))
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')$(if $(JAX),-jax-$(JAX))
endif
BIN := $(VENV)/bin
WORKERS ?= 2
# All of them, unless folders or files are named.
TESTS ?=
# A worker has its part of the files, so that what a file keeps between its tests is made once; who is done helps the others.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(if $(SEED),--shuffle=$(SEED))
TEXTS := find README.md docs tests compiler dialects rewrites examples -type f ! -name '*.pyc' -exec cksum {} + | sort -k 3

ALONE := $(VENV)-extras
PROOFS := $(VENV)-proofs

.PHONY: demo test extras prove lint check texts bench fuzz update page pictures clean

demo: $(VENV)/stamp
	$(BIN)/partita demo

# In another order, with other workers: make test SEED=7 WORKERS=4. Some of them: make test TESTS=tests/compiler/plan
test: $(VENV)/stamp
	$(PYTEST) $(TESTS)

# What the extras `serve` and `checkpoint` are for, with nothing else of `dev`. Each test has what it needs: one that is skipped fails.
extras: $(ALONE)/stamp
	$(ALONE)/bin/python -m pytest --no-skips -rs tests/serve tests/compiler/api/test_checkpoints.py

# The laws, proved by Z3, or refuted by a counter-example with sizes; and the tests of the proofs. It prints the tables of all laws.
prove: $(PROOFS)/stamp
	$(PROOFS)/bin/python -m pytest --no-skips -q -n $(WORKERS) --dist worksteal tests/rewrites/proofs

lint: $(VENV)/stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

check:
	.ci/run

# Checksums of all that the tests compare with, which they must leave as it is.
texts:
	@$(TEXTS)

bench: $(VENV)/stamp
	$(BIN)/python -m benchmarks

# Only the tests whose examples are generated, many more of them, and other ones each time, by the code generator of users.
fuzz: $(VENV)/stamp
	$(PYTEST) --hypothesis-profile=fuzz $$(grep -rl --include='test_*.py' hypothesis tests)

update: $(VENV)/stamp
	$(PYTEST) --update

# The page of `plan.html`, from its sources in `page/`. Needs Node and npm; everybody else has the page that is built.
page:
	cd page && npm ci && npm run build

# The pictures of the documentation: a session of `partita shell`, and pages by the Chromium of the machine.
pictures: $(VENV)/stamp
	COLUMNS=80 $(BIN)/partita shell examples/llama.py:plan --record docs/pictures/shell.svg < docs/pictures/tactics.txt
	$(BIN)/python -m docs.pictures.make

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .jax_cache .ruff_cache .hypothesis

# The stamp is written last, so an install that was cut off is begun again. Another JAX is installed over what Partita asks for.
$(VENV)/stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Partita needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv --clear $(VENV)
	@echo "installing Partita and what it needs into $(VENV): about half a minute"
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(if $(JAX),$(BIN)/python -m pip install --quiet 'jax==$(JAX).*')
	@touch $@

$(ALONE)/stamp: pyproject.toml
	$(PYTHON) -m venv --clear $(ALONE)
	@echo "installing Partita and the extras into $(ALONE): about a minute"
	$(ALONE)/bin/python -m pip install --quiet --editable '.[serve,checkpoint,demo,test]'
	@touch $@

$(PROOFS)/stamp: pyproject.toml
	$(PYTHON) -m venv --clear $(PROOFS)
	@echo "installing Partita and Z3 into $(PROOFS): about half a minute"
	$(PROOFS)/bin/python -m pip install --quiet --editable '.[proofs,demo,test]'
	@touch $@
