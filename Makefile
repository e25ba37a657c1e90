# Every target sets up .venv by itself, from python3 (3.11 or later) and make alone, and does nothing twice.
#   make test ARGS="tests/contract -k Ridge"      make bench ARGS="ridge-dense --quick"

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
JOBS ?= 2
ARGS ?=

# Tests start hundreds of processes, which would all compile the library's source again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test explore mutants lint format bench docs clean

help:
	@echo "make demo     train on the table of penguins, and write a report to demo/report.html"
	@echo "make test     run all tests, doctests included"
	@echo "make explore  run the property-based tests on new random examples"
	@echo "make mutants  show that the tests find deliberate bugs"
	@echo "make lint     ruff, mypy --strict and import-linter"
	@echo "make format   format the code and apply automatic fixes"
	@echo "make bench    measure against other libraries, rewrite docs/benchmarks.md"
	@echo "make docs     build the documentation into site/"
	@echo "make clean    delete .venv and everything generated"

demo: $(VENV)/.stamp-demo
	$(BIN)/summula train src/summula/datasets/penguins.csv --target species --out demo $(ARGS)

test: $(VENV)/.stamp-dev
	$(BIN)/python -m summula.core.compilation.warmup --float32
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

explore: $(VENV)/.stamp-dev
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n $(JOBS) -m hypothesis $(ARGS)

mutants: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.mutants.run $(ARGS)

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.stamp-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.stamp-bench
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.stamp-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation is in site/index.html."

clean:
	rm -rf $(VENV) site build dist demo demo.png .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks examples -type d -name __pycache__ -prune -exec rm -rf {} +

# A candidate may be a stub that only prints an error, so each one is asked for its version.
$(VENV)/.stamp-venv:
	@for python in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "Summula needs Python 3.11 or later, and none was found: install one, or name it with make PYTHON=..." >&2; \
	  exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$($$found --version)"; \
	$$found -m venv --clear $(VENV)
	@touch $@

$(VENV)/.stamp-core: pyproject.toml $(VENV)/.stamp-venv
	@echo "Installing summula"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.stamp-demo: $(VENV)/.stamp-core
	@echo "Installing the command line"
	@$(PIP) install --editable '.[cli]'
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-core
	@echo "Installing the tools of development"
	@$(PIP) install --editable '.[dev]'
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp-core
	@echo "Installing the libraries to compare with"
	@$(PIP) install --editable '.[bench]'
	@touch $@
