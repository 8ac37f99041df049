# `make` runs what CI runs. `make demo` and `make test` each do the whole set-up on a fresh machine.
# Needs: Python 3.11 or newer with venv, make, gcc (the tests build a fake driver).

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: all demo test check format docs ebpf lock accept gpu-check bench bench-agent bench-usage bench-share bench-naming bench-metering bench-audit bench-lake clean

all: check test

$(STAMP): locks/run.txt locks/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: apt install python3 python3-venv"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "python venv is needed: apt install python3-venv"; exit 2; }
	@echo "installing locked dependencies into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/run.txt -r locks/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)  ## the main job, on any machine, no GPU needed: about 20 seconds
	@$(BIN)/gpuledger demo

test: $(STAMP)  ## every test
	@$(BIN)/python -m tests.in_halves

check: $(STAMP)  ## format, lint, types, layers, house and docs
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pytest -q tests/house

format: $(STAMP)  ## rewrite to the house's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(STAMP)  ## rewrite docs/reference from the program itself
	@$(BIN)/python -m docs.generate

ebpf: $(STAMP)  ## build the kernel's part anew; needs: apt install clang bpftool
	@$(BIN)/python tools/build_ebpf.py

accept: $(STAMP)  ## rewrite the answers of the scenario tables; review the diff
	@GPULEDGER_ACCEPT=1 $(BIN)/python -m pytest -q tests/scenarios

gpu-check: $(STAMP)  ## on a machine with a GPU, as root: under 5 minutes
	@$(BIN)/python -m tests.gpu.gpu_check

bench: bench-agent bench-usage bench-share bench-naming bench-metering bench-audit bench-lake

bench-agent: $(STAMP)  ## the agent's CPU and memory against a bare loop and its peers
	@$(BIN)/python bench/bench_agent.py

bench-usage: $(STAMP)  ## usage over a month against hand-written SQL; a 4,000-row import
	@$(BIN)/python bench/bench_usage.py

bench-share: $(STAMP)  ## fair share of 5,000 users under a second; admit on PostgreSQL against a bare transaction
	@$(BIN)/python bench/bench_share.py

bench-naming: $(STAMP)  ## as root: who names processes of 10 ms, a storm of 20,000, what watching costs; 10 minutes
	@$(BIN)/python bench/bench_naming.py

bench-audit: $(STAMP)  ## audits: 20,000 queries; a 100,000-line scrape against prometheus_client's parser
	@$(BIN)/python bench/bench_audit.py

bench-metering: $(STAMP)  ## reserved time against bare SQL: passes, transitions, a month of jobs; 5 minutes
	@$(BIN)/python bench/bench_metering.py

bench-lake: $(STAMP)  ## ten million events Parquet to Parquet, ten million records by team, against bare SQL; 10 minutes
	@$(BIN)/python bench/bench_lake.py

lock:  ## compile the hashed locks anew
	@$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip install --quiet pip-tools
	@cd locks && for set in run:../pyproject.toml dev:dev.in bench:bench.in; do \
		../$(VENV)/lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
			--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-annotate \
			--output-file $${set%%:*}.txt $${set#*:}; done

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
