# Every target makes its own .venv, once, and again when pyproject.toml changes.
# Needed on the machine: make and Python 3.11 or newer (another one: `make test PYTHON=python3.12`).

PYTHON  ?= python3
WORKERS ?= 2
ROBOT   ?= puma560
VENV    := .venv
BIN     := $(VENV)/bin
TOUR    := $(VENV)/.tour
DEV     := $(VENV)/.dev
INTEROP := $(VENV)/.interop
TORCH   ?= torch==2.13.0

# Compiled modules are kept, whatever the shell says: many tests start Python anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup tour test prove test-all lint types docs bench corpus agreement fuzz mutants clean

help:
	@echo "make setup   the development environment in .venv"
	@echo "make tour    a guided tour, and its report linkwise_tour.html (your robot: make tour ROBOT=a.urdf)"
	@echo "make test    the tests, in a few minutes"
	@echo "make prove   the full evidence: all other tests, oracles, every page, browsers (make test-all: hours)"
	@echo "make lint    style, spelling, types, import layers"
	@echo "make docs    the documentation, in docs/_build/html"
	@echo "make bench   measurements, written to benchmarks/results"
	@echo "make corpus  the table docs/evidence/corpus.md: public robots, compared with Pinocchio and MuJoCo"
	@echo "make agreement  the table docs/evidence/agreement.md: every quantity, compared with them"
	@echo "make fuzz    a long run of all fuzzers, and the table of docs/evidence/fuzzing.md"
	@echo "make mutants the table docs/evidence/mutants.md: small mistakes in the source, and which the tests notice"
	@echo "make clean   remove .venv and everything built"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Linkwise needs Python 3.11 or newer; found $$($(PYTHON) --version). Try: make setup PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(TOUR): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[tour]'
	@touch $@

$(DEV): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(TOUR) $@

# The libraries of the bridges. Torch is pinned here: without a version, some registries deliver its
# CUDA packages too, several GB of them (another one: `make prove TORCH=torch`).
$(INTEROP): pyproject.toml | $(DEV)
	$(BIN)/python -m pip install --quiet --editable '.[interop]' '$(TORCH)'
	@touch $@

setup: $(DEV)

tour: $(TOUR)
	@$(BIN)/linkwise tour "$(ROBOT)"

test: $(DEV)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# The marker `hypothesis` is on every property test: here they draw more examples.
prove: $(DEV) $(INTEROP)
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal \
		-m "(prove or slow or hypothesis) and not nightly"

test-all: $(DEV) $(INTEROP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --shipped -m ""

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/typos
	$(MAKE) --no-print-directory types
	$(BIN)/lint-imports --no-cache

types: $(DEV)
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

docs: $(DEV)
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going -q -b html docs docs/_build/html

bench: $(DEV)
	$(BIN)/python benchmarks/model.py
	$(BIN)/python benchmarks/compile_time.py
	$(BIN)/python benchmarks/kernel.py
	$(BIN)/python benchmarks/functions.py
	$(BIN)/python benchmarks/derivatives.py
	$(BIN)/python benchmarks/chain.py
	$(BIN)/python benchmarks/inverse_kinematics.py
	$(BIN)/python benchmarks/stepping.py
	$(BIN)/python benchmarks/simulate.py
	$(BIN)/python benchmarks/c_export.py
	$(BIN)/python benchmarks/operational_space.py
	$(BIN)/python benchmarks/hybrid.py
	$(BIN)/python benchmarks/open_chain.py
	$(BIN)/python benchmarks/closed_chain.py
	$(BIN)/python benchmarks/closed_chain_cost.py
	$(BIN)/python benchmarks/task_space.py
	$(BIN)/python benchmarks/tasks.py
	$(BIN)/python benchmarks/rollout.py
	$(BIN)/python benchmarks/study.py
	$(BIN)/python benchmarks/rollout_gradient.py

corpus: $(DEV)
	$(BIN)/python tools/corpus.py

agreement: $(DEV)
	$(BIN)/python tools/agreement.py --workers $(WORKERS)

fuzz: $(DEV)
	$(BIN)/python tools/fuzzing.py

mutants: $(DEV)
	$(BIN)/python tools/mutants.py --workers $(WORKERS)

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
