PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast check bench docs coverage release constraints clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.stamp ## play the medallion example, in half a minute
	$(BIN)/interlock demo --once

test: .venv/.stamp ## run all tests
	$(BIN)/pytest -n logical --maxprocesses 4

test-fast: .venv/.stamp ## run the tests that take no longer than a breath, in about a minute
	$(BIN)/pytest -n logical --maxprocesses 4 -m 'not slow' --ignore tests/crash --ignore tests/safety --ignore tests/demo \
		--ignore tests/conformance/test_asl_against_moto.py

check: .venv/.stamp ## lint, format, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.stamp ## measure
	$(BIN)/python -m bench

docs: .venv/.docs-stamp ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

coverage: .venv/.stamp ## run all tests, demand 95 % of the branches of decide/ and model/
	$(BIN)/pytest -n logical --maxprocesses 4 --cov --cov-report=
	$(BIN)/coverage report
	$(BIN)/coverage json --quiet -o .coverage.json
	$(BIN)/python .ci/branch_coverage.py .coverage.json 95 src/interlock/decide src/interlock/model

release: .venv/.stamp ## build the sdist and the wheel into dist/, and check them
	rm -rf dist
	$(BIN)/uv build --quiet --python $(BIN)/python --build-constraints constraints.txt --out-dir dist
	$(BIN)/python .ci/check_release.py dist

constraints: ## pin the newest versions that fit pyproject.toml
	rm -rf .venv/fresh
	$(PYTHON) -m venv .venv/fresh
	.venv/fresh/bin/python -m pip install -q --disable-pip-version-check -e '.[dev,aws,docs]' uv hatchling editables
	{ grep '^#' constraints.txt; .venv/fresh/bin/python -m pip freeze --exclude-editable; } > .venv/fresh/pins
	mv .venv/fresh/pins constraints.txt
	rm -rf .venv/fresh

clean: ## remove what make made
	rm -rf .venv site build dist .coverage .coverage.* .coverage.json .hypothesis .mypy_cache .pytest_cache \
		.ruff_cache .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# uv installs in seconds; where it can not be had, or does not reach the index, pip does the same.
define install
	{ $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt uv \
	  && $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt -b constraints.txt -e '.[$(1)]'; } \
	|| { echo 'uv did not manage; installing with pip' >&2; \
	     $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[$(1)]'; }
endef

.venv/.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'Interlock needs Python 3.11 or newer as "$(PYTHON)"; name another with: make PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(call install,dev$(comma)aws)
	@touch $@

.venv/.docs-stamp: .venv/.stamp
	$(call install,dev$(comma)aws$(comma)docs)
	@touch $@

comma := ,
