# `make demo` and `make test` do all their own set-up: a virtual environment with the package and its tools.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types docs benchmark clean

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "multicause needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/multicause demo --out out/demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

# Pages and reference as HTML in out/docs; a warning is an error.
docs: $(READY)
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --builder html docs out/docs
	@echo "Open out/docs/index.html"

benchmark: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) out build dist
