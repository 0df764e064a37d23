# `make demo` and `make test` need only Python 3.11 to 3.13 and make; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
SHARE ?= 1
BIN := $(VENV)/bin
# else every process that a test starts compiles all of logeval, and pytest rewrites every test
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test check pytest faults bench full-size docs notebooks clean

help:
	@echo "make demo    set up .venv and run everything on a synthetic log"
	@echo "make test    set up .venv, check style and types, run all tests"
	@echo "make faults  kills, damage and hostile input in their long form (hours)"
	@echo "make full-size  every stage on a log of the Kaggle size, measured (45 GB of disk)"
	@echo "make bench   speed against simple baselines"
	@echo "make docs    build the documentation site into site/"
	@echo "make notebooks   run the notebooks and store them with their outputs"
	@echo "make clean   remove .venv, the demo's output and caches"

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	@echo "Setting up $(VENV) (once; about two minutes)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: setup
	$(BIN)/logeval run pipelines/demo.toml

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: setup
	$(MAKE) -j2 check pytest

pytest: setup
	$(BIN)/python -m pytest -n auto --dist loadfile

faults: setup
	LOGEVAL_FAULTS=long $(BIN)/python -m pytest tests/faults -n auto -v

full-size: setup
	$(BIN)/python benchmarks/full_size.py --share $(SHARE) --out .

bench: setup
	$(BIN)/python benchmarks/run.py

docs: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/mkdocs build --strict

notebooks: setup
	$(BIN)/python notebooks/store.py

clean:
	rm -rf $(VENV) demo site .numba_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
