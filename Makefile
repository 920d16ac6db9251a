.DEFAULT_GOAL := help
.PHONY: help setup run test check fmt lint type proto proto-check proto-baseline lock mutants eval bench bench-long bench-recall clean

PY := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export BUF_CACHE_DIR := $(CURDIR)/.cache/buf

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Build .venv from requirements-dev.lock (every other target does it when needed)
	@scripts/setup

run: setup ## Start a whole broker on this machine: PORT=..., PROVIDER=redis or cosmos, ARGS='...' are passed on
	$(PY) -m broker dev --data .broker-dev$(addprefix -,$(filter-out postgres,$(PROVIDER))) \
		$(if $(PROVIDER),--provider $(PROVIDER)) $(if $(PORT),--port $(PORT)) $(ARGS)

test: setup ## Run the tests: ARGS='-k name' narrows them
	@scripts/redis
	$(PY) -m pytest -n auto $(ARGS)

check: lint type proto-check ## Everything but the tests: style, types, import rules, protos, tidiness
	$(PY) -m pytest -q tests/architecture

lint: setup ## Style and import rules
	ruff check
	ruff format --check
	lint-imports --cache-dir .cache/import-linter

type: setup ## Types, strictly
	mypy

fmt: setup ## Put the code in form
	ruff check --fix-only
	ruff format

proto: setup ## Generate the Python code of proto/
	scripts/proto generate

proto-check: setup ## Lint proto/, refuse breaking changes, compare with the generated code
	scripts/proto check

proto-baseline: setup ## At a release: make today's protos the ones that later changes must not break
	scripts/proto baseline

lock: setup ## Renew the lock files: ARGS=--upgrade takes newer releases
	scripts/lock $(ARGS)

mutants: setup ## Plant each known bug in turn and see the tests go red: ARGS=word narrows them
	@scripts/redis
	$(PY) -m tests.mutants $(ARGS)

eval: setup ## Drive a broker with the conversations of a folder and check what it keeps: DATA=<folder>, PROVIDER=redis or cosmos
	$(PY) -m tests.evaluation $(if $(DATA),"$(DATA)") $(if $(PROVIDER),--provider $(PROVIDER)) $(ARGS)

bench: setup ## Measure the broker beside its floors and peers: writes bench.json; ARGS='--rounds 5 --only create get' writes nothing
	@scripts/redis
	$(PY) -m tests.bench $(ARGS)

bench-long: setup ## Measure growth and leaks, which takes long
	@scripts/redis
	$(PY) -m tests.bench.long $(ARGS)

bench-recall: setup ## How much of what answers a question is recalled: DATA=<folder>, PROVIDER=redis or cosmos
	$(PY) -m tests.bench.recall $(if $(DATA),"$(DATA)") $(if $(PROVIDER),--provider $(PROVIDER)) $(ARGS)

clean: ## Remove what was built or kept here, the .venv and development data too
	rm -rf .broker-dev .broker-dev-* .broker-site deploy/compose/secrets
	@if [ -x $(PY) ]; then $(PY) -m broker.devstack.postgres.sweep; fi
	rm -rf .venv .cache .hypothesis build dist
	find broker providers tests -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
