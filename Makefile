# Every target makes what it needs: a virtual environment in .venv, the project in it, the tools.
# Stamps in .venv remember what is installed, so the second run starts at once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# One environment is shared by all targets, so they take turns.
.NOTPARALLEL:

VENV := .venv
PY := $(VENV)/bin/python
# Install into the environment of an interpreter: $(call install,INTERPRETER,WHAT). uv needs seconds where pip needs minutes;
# pip reads settings of its own, so it serves where only pip can reach a package index.
install = $(PY) -m uv pip install --quiet --python $(1) $(2) || $(1) -m pip --disable-pip-version-check -qq install $(2)
# Half of the tests wait for processes, so one more than there are cores of a small machine; whoever is done helps out.
WORKERS ?= 3
# Those tests mostly wait for time-outs, so more of them may wait at once.
SDK_WORKERS ?= 4
# The environments of SDKs, one for each file in requirements/sdks: make SDKS=older test-sdks
SDKS ?= $(sort $(basename $(notdir $(wildcard requirements/sdks/*.txt))))
# What does not speak to the lab has tests of its own, in the folder with the name of its environment.
APART := stores frameworks engines temporal
# The environments that hold agent frameworks, whose plugins tests/sdks/plugins runs there.
PLUGINS := frameworks engines
plugin_tests = .sdks/$$name/bin/python -m pytest -q -n $(SDK_WORKERS) --dist loadgroup tests/sdks/plugins

# The first Python that is new enough, unless one is named: make PYTHON=python3.12 test
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)

.PHONY: help demo test test-all test-slow test-sdks test-lowest providers frameworks check bench docs site dist lock clean

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.agents ## a release that fails twice, live: once foreseen, once not; and an agent that recovers
	@$(PY) examples/demo.py

test: $(VENV)/.test ## run the tests that answer in minutes
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

test-all: $(VENV)/.test ## run the slow tests too, and those of the SDKs and frameworks in their own environments
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal
	@$(MAKE) --no-print-directory SDKS="$(filter-out newest,$(SDKS))" test-sdks

# Properties are tried with more examples than `make test` has time for.
test-slow: $(VENV)/.test ## run only what `make test` leaves out
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal -m "slow or hypothesis"

# Workers of task engines are processes of their own, and the project is not installed beside the SDKs.
test-sdks frameworks: export PYTHONPATH := $(CURDIR)/src

test-sdks: $(SDKS:%=.sdks/%/.made) ## run the SDK tests with the SDKs of each requirements/sdks/*.txt
	@for name in $(SDKS); do \
		echo "testing with the SDKs of requirements/sdks/$$name.txt"; \
		rm -f .sdks/$$name.jsonl; \
		if [ -d tests/sdks/$$name ]; then \
			.sdks/$$name/bin/python -m pytest -q -n $(SDK_WORKERS) --dist loadfile tests/sdks/$$name tests/sdks/test_drift.py; \
		else \
			FAILWELL_MATRIX=.sdks/$$name.jsonl .sdks/$$name/bin/python -m pytest -q -n $(SDK_WORKERS) $(APART:%=--ignore=tests/sdks/%) --ignore=tests/sdks/plugins tests/sdks; \
		fi; \
		case " $(PLUGINS) " in *" $$name "*) $(plugin_tests);; esac; \
	done

# What touches a dependency or an extra: templates, files, panels, logs, HTTP, telemetry, prices, the command line.
LOWEST_TESTS := tests/cli tests/delivery tests/files tests/integrations tests/workflows \
	tests/calls/test_chain_cost.py tests/jobs/test_schedules.py

test-lowest: .sdks/lowest/.project ## run the tests of every dependency with the oldest release it may have
	@# Old releases of Starlette leave streams of anyio open, which a later test would be blamed for.
	@.sdks/lowest/bin/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow" \
		-W ignore::pytest.PytestUnraisableExceptionWarning $(LOWEST_TESTS)

providers: test-sdks $(VENV)/.project ## the same, and write what came out into docs/reference
	@$(PY) -m tools.docs.providers .sdks/*.jsonl
	@$(PY) -m tools.docs

frameworks: $(PLUGINS:%=.sdks/%/.made) $(VENV)/.project ## run an agent of each framework before and after its plugin, into docs/reference
	@for name in $(PLUGINS); do \
		rm -f .sdks/$$name.frameworks; \
		FAILWELL_FRAMEWORKS=.sdks/$$name.frameworks $(plugin_tests); \
	done
	@$(PY) -m tools.docs.frameworks .sdks/*.frameworks
	@$(PY) -m tools.docs

check: $(VENV)/.dev ## everything a change must pass beside the tests
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(VENV)/bin/pyright --pythonpath $(PY)
	@$(VENV)/bin/lint-imports --no-logo --no-cache
	@$(VENV)/bin/deptry --no-ansi src
	@$(PY) -m tools.docs --check
	@$(PY) -m tools.docs.frameworks --check
	@$(PY) -m tools.acceptance --check
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict --site-dir $(VENV)/site

bench: $(VENV)/.test ## measure start-up, the error path, the loops and the rules
	@$(PY) -m bench
	@for file in bench/[!_]*.py; do $(PY) "$$file"; done

docs: $(VENV)/.project ## write the table of kinds and the acceptance table again
	@$(PY) -m tools.docs

site: $(VENV)/.dev ## build the documentation as a site, into site/
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict

dist: $(VENV)/.dev ## build the sdist and the wheel, and write the wheel's bill of materials (CycloneDX)
	@rm -rf dist
	@$(PY) -m build --outdir dist .
	@$(PY) -m tools.sbom dist

lock: $(VENV)/.dev ## resolve requirements/*.txt again, into requirements/locks
	@$(PY) -m tools.locks

clean: ## remove what make and the tools made
	rm -rf $(VENV) .sdks build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@if [ -z "$(PYTHON)" ]; then \
		echo "error: failwell needs Python 3.11 or newer, and none was found" >&2; \
		echo "hint: install one, or name it: make PYTHON=/path/to/python3.11 ..." >&2; \
		exit 1; \
	fi
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.uv: $(PY) requirements/locks/dev.txt
	@$(PY) -m pip --disable-pip-version-check -qq install --constraint requirements/locks/dev.txt uv
	@touch $@

# Every release that is installed, also of what others need, is pinned in requirements/locks.
$(VENV)/.project: $(VENV)/.uv pyproject.toml src/failwell/_version.py requirements/locks/dev.txt
	@echo "installing failwell into $(VENV)"
	@$(call install,$(PY),--constraint requirements/locks/dev.txt --editable '.[engine]')
	@touch $@

$(VENV)/.agents: $(VENV)/.project
	@echo "installing what agents need"
	@$(call install,$(PY),--constraint requirements/locks/dev.txt --editable '.[agents]')
	@touch $@

$(VENV)/.test: $(VENV)/.project requirements/test.txt requirements/runner.txt requirements/extras.txt requirements/sdks/newest.txt
	@echo "installing what the tests need"
	@$(call install,$(PY),--constraint requirements/locks/dev.txt --requirement requirements/test.txt)
	@touch $@

$(VENV)/.dev: $(VENV)/.test requirements/dev.txt
	@echo "installing the tools"
	@$(call install,$(PY),--constraint requirements/locks/dev.txt --requirement requirements/dev.txt)
	@touch $@

.sdks/lowest/.project: .sdks/lowest/.made pyproject.toml src/failwell/_version.py
	@$(call install,.sdks/lowest/bin/python,--no-deps --editable .)
	@touch $@

.sdks/%/.made: requirements/locks/%.txt | $(VENV)/.uv
	@echo "making .sdks/$*"
	@rm -rf .sdks/$*
	@$(PY) -m venv .sdks/$*
	@# The lock names everything, also where it overrides what a release asks for.
	@$(call install,.sdks/$*/bin/python,--no-deps --requirement $<)
	@# For its entry points; PYTHONPATH says whose source is tested.
	@$(call install,.sdks/$*/bin/python,--no-deps --editable .)
	@touch $@
