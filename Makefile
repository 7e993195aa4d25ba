PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help audit lock demo test test-all test-fast faults check bench bench-report bench-ui bench-ui-report docs coverage mutants release constraints clean ui ui-check ui-test ui-schema ui-screenshots lambda terraform

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.stamp ui ## play the medallion example: with its page at a terminal, once to its end elsewhere
	@if [ -t 1 ]; then $(BIN)/interlock demo; else $(BIN)/interlock demo --once; fi

test: .venv/.stamp ui ## run the tests, the page's included; of the journeys on AWS a sample
	$(BIN)/pytest -n logical --maxprocesses 4 -m 'not long'
	$(call with_node,test)

test-all: .venv/.stamp ui ## run all tests, every journey on AWS included
	$(BIN)/pytest -n logical --maxprocesses 4
	$(call with_node,test)

test-fast: .venv/.stamp ## run the tests that take no longer than a breath, in about a minute
	$(BIN)/pytest -n logical --maxprocesses 4 -m 'not slow and not long' --ignore tests/crash --ignore tests/faults --ignore tests/safety \
		--ignore tests/demo --ignore tests/conformance/test_asl_against_moto.py

SECONDS ?= 600
faults: .venv/.stamp ## break a real controller for ten minutes (SECONDS=, SEED=): writes faults-report.json
	$(BIN)/python -m tests.faults --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

check: .venv/.stamp ## lint, format, types, import layers, the page's lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(call with_node,check)

# ------------------------------------------------------------------------------------------------------- the page

# Node 20 or newer builds the page. Without one everything else works: it is said in one line, and is an error in CI.
NODE_OK := $(shell node -e 'process.exit(+process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null && npm --version >/dev/null 2>&1 && echo yes)
NO_NODE := the page is not built: it needs Node.js 20 or newer with npm
PAGE := src/interlock/web/dist/index.html
PAGE_SOURCES := $(shell find dashboard/src dashboard/public dashboard/*.* -type f 2>/dev/null)

ui: ## build the page into src/interlock/web/dist (skipped when nothing has changed)
ifeq ($(NODE_OK),yes)
	@$(MAKE) --no-print-directory $(PAGE) || { echo 'the page could not be built: see above' >&2; test -z "$(CI)"; }
else
	@echo '$(NO_NODE)' >&2; test -z "$(CI)"
endif

ui-check: ## the page: lint, types, unit tests, build, no source map
	$(call with_node,check)
	$(call with_node,unit)
	@$(MAKE) --no-print-directory ui
	@test -z "$$(find src/interlock/web/dist -name '*.map' 2>/dev/null)" || { echo 'there is a source map in the page' >&2; exit 1; }

ui-schema: .venv/.stamp dashboard/node_modules/.stamp ## generate the page's API types from the API's description
	$(BIN)/python .ci/openapi.py > .venv/openapi.json
	dashboard/node_modules/.bin/openapi-typescript .venv/openapi.json --output dashboard/src/api/schema.d.ts

# Parameters of the bench are read from the environment.
export MINUTES ONLY
ui-screenshots: .venv/.stamp ui ## take pictures of every view of the demo into docs/images/dashboard
	$(call with_node,screenshots)

bench-ui: .venv/.stamp ui ## measure the page in a browser (MINUTES=30 of events, ONLY=page): prints a table, writes bench-ui-results.json; about 40 minutes
	$(call with_node,bench)
	@$(BIN)/python -m bench.ui_report print

bench-ui-report: .venv/.stamp ## draw what make bench-ui measured into docs/performance-ui.md
	@$(BIN)/python -m bench.ui_report write

# A script of dashboard/package.json, where there is Node.
define with_node
	@if [ "$(NODE_OK)" = yes ]; then $(MAKE) --no-print-directory dashboard/node_modules/.stamp && npm --prefix dashboard run --silent $(1); \
	else echo '$(NO_NODE)' >&2; test -z "$(CI)"; fi
endef

dashboard/node_modules/.stamp: dashboard/package.json dashboard/package-lock.json
	npm --prefix dashboard ci --silent --no-audit --no-fund
	@touch $@

$(PAGE): dashboard/node_modules/.stamp $(PAGE_SOURCES)
	npm --prefix dashboard run --silent build

bench: .venv/.stamp ## measure: prints a table, writes bench-results.json; about a quarter of an hour
	$(BIN)/python -m bench
	@$(BIN)/python -m tests.aws.units print

bench-report: .venv/.stamp ## draw what make bench measured into docs/performance.md
	$(BIN)/python -m bench.report

# --------------------------------------------------------------------------------------------------------- on AWS

ARCHITECTURE ?= arm64
lambda: .venv/.stamp ## build the packages of the functions into build/lambda (ARCHITECTURE=arm64 or x86_64)
	deploy/build --architecture $(ARCHITECTURE)

terraform: .venv/.stamp ## check the Terraform module offline: fmt, validate, test, cfn-lint, statelint, parliament, checkov
	$(BIN)/python -m tools.terraform

docs: .venv/.docs-stamp ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

coverage: .venv/.stamp ## run all tests, demand 95 % of the branches of decide/ and model/
	$(BIN)/pytest -n logical --maxprocesses 4 -m 'not long' --cov --cov-report=
	$(BIN)/coverage report
	$(BIN)/coverage json --quiet -o .coverage.json
	$(BIN)/python .ci/branch_coverage.py .coverage.json 95 src/interlock/decide src/interlock/model

release: .venv/.stamp ## build sdist, wheel and bill of materials into dist/, check and audit them (AUDIT=offline)
	rm -rf dist
	@$(MAKE) --no-print-directory ui CI=1
	$(BIN)/uv build --quiet --python $(BIN)/python --build-constraints requirements.lock --require-hashes --out-dir dist
	$(BIN)/python .ci/check_release.py dist
	$(BIN)/python -m tools.sbom
	$(BIN)/python -m tools.audit $(if $(filter offline,$(AUDIT)),--offline)

audit: .venv/.stamp ## ask whether a pinned release has a known vulnerability (AUDIT=offline: go on where nobody can be asked)
	$(BIN)/python -m tools.audit $(if $(filter offline,$(AUDIT)),--offline)

constraints: ## pin the newest versions that fit pyproject.toml
	rm -rf .venv/fresh
	$(PYTHON) -m venv .venv/fresh
	.venv/fresh/bin/python -m pip install -q --disable-pip-version-check -e '.[dev,aws,docs]' uv hatchling editables
	{ grep '^#' constraints.txt; .venv/fresh/bin/python -m pip freeze --exclude-editable; } > .venv/fresh/pins
	mv .venv/fresh/pins constraints.txt
	rm -rf .venv/fresh
	@echo 'now: pin the hatchling of constraints.txt in pyproject.toml, and make lock'

lock: ## write the digests of all files of the pinned releases into requirements.lock
	$(BIN)/python -m tools.hashes constraints.txt requirements.lock
	$(BIN)/python -m tools.hashes tools/audit.txt tools/audit.lock

SEED ?= 1
SAMPLE ?= 40

mutants: .venv/.stamp ## break decide/ and control/ on purpose, SAMPLE times by SEED: do the tests notice? About half an hour
	$(BIN)/python -m tools.mutants src/interlock/decide --sample $(SAMPLE) --seed $(SEED) --at-least 95 --json .mutants-decide.json
	$(BIN)/python -m tools.mutants src/interlock/control --sample $(SAMPLE) --seed $(SEED) --at-least 85 --json .mutants-control.json

clean: ## remove what make made
	rm -rf .venv site build dist .coverage .coverage.* .coverage.json .hypothesis .mypy_cache .pytest_cache \
		.ruff_cache .import_linter_cache dashboard/node_modules src/interlock/web/dist
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Every file that is installed must have a digest of requirements.lock. uv installs in seconds; where it cannot be had, or
# does not reach the index, pip does the same. HASHES=off goes by the versions of constraints.txt alone, for an index
# that builds its own files.
HASHES ?= on
ifeq ($(HASHES),off)
define install
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
endef
else
define install
	@awk '/^[A-Za-z0-9]/ {of_uv = /^uv==/} of_uv' requirements.lock > .venv/uv.lock
	{ $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r .venv/uv.lock \
	  && $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt -c requirements.lock -b requirements.lock \
	       -e '.[$(1)]'; } \
	|| { echo 'uv did not manage; installing with pip' >&2; \
	     $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements.lock \
	     && $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .; }
endef
endif

.venv/.stamp: pyproject.toml constraints.txt requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'Interlock needs Python 3.11 or newer as "$(PYTHON)"; name another with: make PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(call install,dev$(comma)aws)
	@touch $@

.venv/.docs-stamp: .venv/.stamp
	$(call install,dev$(comma)aws$(comma)docs)
	@touch $@

comma := ,
