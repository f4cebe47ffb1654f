# Thin on purpose: packaging/setup_env.py makes .venv, and says what is missing on this machine.
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
# A process for each core, and each file of tests in one of them. What computes on all cores follows by itself.
# Without restarts, since after one xdist 3.8 may wait forever (its issue 1378). Status 2: pytest was interrupted.
SIDE_BY_SIDE := --numprocesses=logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder --max-worker-restart=0

.PHONY: help setup run serve test golden screenshots lint clean
.DEFAULT_GOAL := help

help:
	@echo 'make run      set up, then open the window; ARGS="..." goes to slipstream'
	@echo 'make serve    set up, then answer other programs at localhost:1337; ARGS="..." goes to slipstream serve'
	@echo 'make test     set up, then run all checks and tests; ARGS="..." goes to pytest'
	@echo 'make golden   set up, then compare drafted with plain answers in full: hours; ARGS="..."'
	@echo 'make screenshots  set up, then take pictures of the window, for the README too; ARGS="FOLDER"'
	@echo 'make lint     set up, then run all checks without the tests'
	@echo 'make setup    set up .venv only'
	@echo 'make clean    remove .venv and all caches in this folder'

setup:
	@$(PYTHON) packaging/setup_env.py setup

run:
	@$(PYTHON) packaging/setup_env.py run -- $(firstword $(ARGS))
	@$(BIN)/slipstream $(ARGS)

serve:
	@$(PYTHON) packaging/setup_env.py setup
	@$(BIN)/slipstream serve $(ARGS)

test:
	@$(PYTHON) packaging/setup_env.py test
	@$(MAKE) --no-print-directory checks
ifeq ($(strip $(ARGS)),)
	QT_QPA_PLATFORM=offscreen $(BIN)/pytest $(SIDE_BY_SIDE) -m 'not all_cores' || failed=$$?; \
	[ "$$failed" = 2 ] || QT_QPA_PLATFORM=offscreen $(BIN)/pytest -m all_cores && exit $${failed:-0}
else
	QT_QPA_PLATFORM=offscreen $(BIN)/pytest $(ARGS)
endif

golden:
	@$(PYTHON) packaging/setup_env.py test
	@$(BIN)/python -m tests.golden $(ARGS)

screenshots:
	@$(PYTHON) packaging/setup_env.py test
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m tests.ui.screenshots $(ARGS)

lint: setup
	@$(MAKE) --no-print-directory checks

.PHONY: checks
checks:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=packaging $(BIN)/mypy packaging/setup_env.py packaging/preflight.py packaging/pip_progress.py
	$(BIN)/lint-imports

clean:
	rm -rf .venv build slipstream.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
