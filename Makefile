# Every target is one line of the library or of a tool: nothing here that Python or a test should know.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
# What Python has compiled is kept, also where the user's settings forbid it (as in lib/env.sh): else each command would compile
# the whole library again.
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
SCRIPTS := .ci/run lib/env.sh
# Sent to the box with their variables set in front of them, which shellcheck cannot know (SC2154).
FRAGMENTS := $(shell find lib/mountlab lib/mountlab_dev -name '*.sh')
# As many as the tests were timed with; each worker has a box of its own (tests/support/workers.py). Tests on the box mostly wait.
# Those of a file run one after another in one worker (tests/conftest.py).
check fuzz coverage: WORKERS := 2
test test-all: WORKERS := 4
PYTEST = $(PY) -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --quiet
# Tests of the repository itself (documents, Makefile, reference) belong to `make check`, slow ones too.
CHECKED := not (box or browser or long) and (repository or not slow)
UNCHECKED := not repository and (slow or box or browser)
# `make check test`, as in CI, runs the tests of both in one session: they are collected once.
BOTH := $(and $(filter check,$(MAKECMDGOALS)),$(filter test,$(MAKECMDGOALS)))
TESTED := not long$(if $(BOTH),, and not repository)
# Claims about this machine's hardware, which others who use it would spoil.
SOAKED := $(patsubst %,tests/live/test_%.py,gate_live why_causes load_live memory_live sweep_live)

# $(call needs,VARIABLE,EXAMPLE): stops with exit code 2 where the user gave no VARIABLE.
needs = $(if $($(1)),,@echo 'make $@: $(1) is missing, for example: make $@ $(2)' >&2; exit 2)
EXAMPLE_SWEEP := SWEEP=ramdisk
EXAMPLE_RUN := RUN=latest
EXAMPLE_BATCH := BATCH=studies
EXAMPLE_RUNS := RUNS="tour latest"
EXAMPLE_BUNDLE := BUNDLE=results/bundle-<title>-<date>.zip
EXAMPLE_PAIR := A=tour B=latest
SWEEP_ARGS = "$(SWEEP)" $(if $(BOX),--box "$(BOX)") $(ARGS)

.PHONY: help env demo plan run resume report index compare batch studies publish reproduce lab bench bench-gate calibrate \
	check needs test test-install test-all fuzz soak coverage audit lint style lock docs dist upload clean-env

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  SWEEP=ramdisk   BOX=local   RUN=latest   ARGS='-p repeats=3'   PYTHON=python3.12"
	@echo "  make reports every failure as exit code 2; .venv/bin/mountlab shows which it was:"
	@echo "  0 done, 1 some trial failed, 2 bad input, 3 box unreachable, 4 unsafe, 5 the gate cannot tell."

env: ## the Python environment, .venv, from requirements.lock
	@lib/env.sh

demo: env ## measure this machine's memory and disk for about four minutes, and write the report
	@$(PY) -m mountlab demo $(ARGS)

plan: ## SWEEP= [BOX=]: what would run, what would be formatted, how long; changes nothing
	$(call needs,SWEEP,$(EXAMPLE_SWEEP))
	@lib/env.sh
	@$(PY) -m mountlab plan $(SWEEP_ARGS)

run: ## SWEEP= [BOX=] [ARGS=]: measure, then report
	$(call needs,SWEEP,$(EXAMPLE_SWEEP))
	@lib/env.sh
	@$(PY) -m mountlab run $(SWEEP_ARGS)

resume: ## RUN=: go on where a run stopped
	$(call needs,RUN,$(EXAMPLE_RUN))
	@lib/env.sh
	@$(PY) -m mountlab resume "$(RUN)" $(ARGS)

report: ## RUN=: write the report of a run again
	$(call needs,RUN,$(EXAMPLE_RUN))
	@lib/env.sh
	@$(PY) -m mountlab report "$(RUN)" $(ARGS)

index: ## write the list of all runs and reports again: results/index.html
	@lib/env.sh
	@$(PY) -m mountlab index $(ARGS)

compare: ## A= B=: what differs between two runs, and their ratios
	$(call needs,A,$(EXAMPLE_PAIR))
	$(call needs,B,$(EXAMPLE_PAIR))
	@lib/env.sh
	@$(PY) -m mountlab compare "$(A)" "$(B)" $(ARGS)

batch: ## BATCH= [SCHEDULER=tcp://HOST:8786] [ARGS=--plan]: many sweeps, boxes at the same time, one page; goes on where it stopped
	$(call needs,BATCH,$(EXAMPLE_BATCH))
	@lib/env.sh
	@$(PY) -m mountlab batch "$(BATCH)" $(if $(SCHEDULER),--scheduler "$(SCHEDULER)") $(ARGS)

studies: env ## the published studies at small size, with their figures and conclusions beside ours: about 45 minutes
	@$(PY) -m mountlab batch params/batches/studies.yml $(ARGS)

publish: ## RUNS= [ARGS=]: a folder and a zip of runs that stand alone, without the names of machines and people
	$(call needs,RUNS,$(EXAMPLE_RUNS))
	@lib/env.sh
	@$(PY) -m mountlab publish $(RUNS) $(ARGS)

reproduce: ## BUNDLE= [BOX=]: check a published bundle, and make its figures again; with BOX run its sweeps again
	$(call needs,BUNDLE,$(EXAMPLE_BUNDLE))
	@lib/env.sh
	@$(PY) -m mountlab reproduce "$(BUNDLE)" $(if $(BOX),--box "$(BOX)") $(ARGS)

lab: env ## JupyterLab on the notebooks, the tour opened [ARGS="--port 9000 --no-browser"]
	@$(PY) -m mountlab lab $(ARGS)

bench: env ## what Mountlab itself costs, beside others that do the same: about 20 minutes [ARGS="--only trials"]
	@$(PY) -m mountlab_dev bench $(ARGS)

bench-gate: env ## is a cheap subject 25 % slower than at the last recorded commit? 10 minutes or more [ARGS="--only plan"]
	@$(PY) -m mountlab_dev bench-gate $(ARGS)

calibrate: env ## simulate how often the statistics are right, and keep the tables in docs/data: about twenty minutes
	@$(PY) -m mountlab_dev calibrate $(ARGS)

docs: env ## the documentation as a site with search, in docs/_build/html: about two minutes, less again [ARGS=--unexecuted]
	@$(PY) -m mountlab_dev docs $(ARGS)

check: env lint ## linters, types, the fast tests, and those of the repository itself: before every commit
	@$(if $(BOTH),,$(PYTEST) -m "$(CHECKED)" --ignore=tests/live --ignore=tests/browser $(ARGS))

needs: env ## the programs of all tests, installed; fails where one is missing still
	@$(PY) -m mountlab_dev needs --all

# Types are checked by `make check`, and with the notebooks by a test of test-all: it takes a minute in a fresh clone.
test: env ## all that a change of the program can break, on real mounts; offers to install the programs that this needs
	@$(PY) -m mountlab_dev needs
	@$(PYTEST) -m "$(TESTED)" $(ARGS)

# By itself, since it makes a small Debian and fetches all libraries: four minutes on a quiet machine.
test-install: env ## from a wheel to a published bundle, on a Debian that has only Python: install, init, demo, a sweep, the lab
	@$(PY) -m mountlab_dev needs
	@$(PY) -m pytest --quiet tests/live/test_bare_root.py $(ARGS)

# In one run, so that what they share (a sweep, a page, the virtual box) is made once.
test-all: check ## both, and what repeats them: each mount option and file system in the guest, faults, hostile input, simulations
	@$(PY) -m mountlab_dev needs
	@MOUNTLAB_TESTS_PART=together $(PYTEST) -m "not alone and (long or $(UNCHECKED))" $(ARGS)
	@MOUNTLAB_TESTS_PART=alone $(PY) -m pytest --quiet -m "long and alone" $(ARGS)

fuzz: env ## the parsers on damaged logs, a hundred times as often as in `make test`: 10 to 15 minutes
	@$(PYTEST) --hypothesis-profile=fuzz tests/fuzz $(ARGS)

soak: env ## [PART=kill9|why_causes|capacity_live|...]: break it on purpose, hundreds of times, and put the tables into docs: about 80 minutes
	@$(PY) -m pytest --quiet -m soak -o faulthandler_timeout=0 $(if $(PART),$(or $(wildcard tests/live/test_$(PART).py),tests/faults/test_$(PART).py),tests/faults $(SOAKED)) $(ARGS)

coverage: env ## lines and branches of lib/mountlab that the fast tests run: a table, and pages in htmlcov/
	@$(PYTEST) -m "not (slow or box or browser or long or repository)" --ignore=tests/live --ignore=tests/browser --cov --cov-report=term:skip-covered --cov-report=html $(ARGS)

audit: env lint ## known vulnerabilities of the libraries, unsafe calls, secrets, permissions [ARGS="--offline"]
	@$(PY) -m mountlab_dev audit $(ARGS)

lint: style ## linters and types, the part of `make check` without tests
	@$(PY) -m mypy --no-error-summary

style: env
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet .
	@said=$$(.venv/bin/lint-imports --no-cache) || { echo "$$said"; exit 1; }
	@if ! command -v shellcheck >/dev/null; then echo "shellcheck is not installed: scripts are not checked"; else \
		shellcheck $(SCRIPTS) && shellcheck --shell=sh --severity=warning --exclude=SC2154 $(FRAGMENTS); fi

dist: env ## [TAG=v0.1.0]: the packages of this version in dist/; with TAG, only if all that names the version agrees with it
	@$(if $(TAG),$(PY) -m mountlab_dev tag "$$TAG")
	@.venv/bin/uv build --quiet --clear --offline --no-build-isolation --out-dir dist

upload: env ## dist/ to the registry, as a workflow that it trusts (docs/releasing.md)
	@.venv/bin/uv publish --trusted-publishing always

lock: env ## resolve requirements.lock again from pyproject.toml (ARGS=--upgrade for the newest versions)
	@.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group build --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --output-file requirements.lock $(ARGS) pyproject.toml

clean-env: ## remove .venv
	rm -rf .venv
