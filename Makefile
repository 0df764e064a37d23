# `make demo` and `make test` need only Python 3.11 to 3.14 and make; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
OLDEST ?= .venv-oldest
SHARE ?= 1
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV = $(or $(shell command -v uv 2>/dev/null),$(BIN)/uv)
# uv installs ten times as fast as pip, which gets it; where it fails, pip does all
define install
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(UV) || $(PIP) uv || true
	$(UV) pip install --quiet --python $(BIN)/python $(1) || $(PIP) $(1)
endef
# else every process that a test starts compiles all of logeval, and pytest rewrites every test
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-oldest check pytest faults bench full-size docs notebooks dist clean

help:
	@echo "make demo    set up .venv and run everything on a synthetic log"
	@echo "make test    set up .venv, check style and types, run all tests"
	@echo "make test-oldest  the tests of every stage with the oldest versions that pyproject.toml allows"
	@echo "make faults  kills, damage and hostile input in their long form (hours)"
	@echo "make full-size  every stage on a log of the Kaggle size, measured (45 GB of disk)"
	@echo "make bench   speed against simple baselines"
	@echo "make docs    build the documentation site into site/"
	@echo "make notebooks   run the notebooks and store them with their outputs"
	@echo "make dist    build wheel and sdist into dist/, and check them"
	@echo "make clean   remove .venv, the demo's output and caches"

setup: $(VENV)/.installed

# what a user needs
$(VENV)/.user: pyproject.toml
	@echo "Setting up $(VENV) (once)"
	$(call install,-e .)
	@touch $@

# and what one needs to work on it
$(VENV)/.installed: pyproject.toml
	@echo "Setting up $(VENV) for tests (once)"
	$(call install,-e '.[dev]')
	@touch $(VENV)/.user $@

demo: $(VENV)/.user
	$(BIN)/logeval demo

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: setup
	$(MAKE) -j2 check pytest

pytest: setup
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Old releases warn about new versions of what they need themselves: warnings are no errors here.
test-oldest:
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
		| sed 's/>=/==/' > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -r $(OLDEST)/oldest.txt \
		-e '.[cluster]' pytest pytest-xdist hypothesis
	$(OLDEST)/bin/python -m pytest -n auto --dist loadfile -W default --disable-warnings tests/log tests/features tests/clicks \
		tests/evaluation tests/replay tests/reports tests/commands tests/test_kernel_cache.py tests/test_cli.py tests/test_pipeline.py \
		tests/test_spreadsheets.py tests/test_tables.py

faults: setup
	LOGEVAL_FAULTS=long $(BIN)/python -m pytest tests/faults -n auto -v

full-size: setup
	$(BIN)/python benchmarks/full_size.py --share $(SHARE) --out .

bench: setup
	$(BIN)/python -m benchmarks.run

docs: setup
	$(BIN)/python docs/pages.py build/pages
	$(BIN)/zensical build --strict --clean --config-file mkdocs.yml

dist: $(VENV)/.user
	rm -rf dist
	$(call install,build twine)
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

notebooks: setup
	$(BIN)/python notebooks/store.py

clean:
	rm -rf $(VENV) $(OLDEST) demo site build dist .cache .numba_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
