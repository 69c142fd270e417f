# `make` alone lists the targets.

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-python referee golden golden-record golden-cpus wheel docs lint bench bench-long bench-dask fuzz doc install clean

# What `make fuzz` runs, and for how long.
FUZZ_TARGET ?= svmlight
FUZZ_SECONDS ?= 60

# Where cargo puts what it builds.
BUILT = $(or $(CARGO_TARGET_DIR),target)

# What the referee checks.
PROGRAM ?= $(BUILT)/release/maxmargin
CASES ?= 200
SEED ?= 1

# The environment in which the Python package is tested, and what it works together with.
VENV ?= target/python
PYTHON_FRIENDS = numpy pytest scipy scikit-learn pandas polars "distributed>=2024.1" dask[array,dataframe] fsspec

help: ## list the targets
	@echo "make targets:"
	@sed -n 's/^\([a-z-]*\):.*## /\1:/p' Makefile | while IFS=: read -r name what; do printf '  %-13s %s\n' "$$name" "$$what"; done

demo: ## build, then train, predict and evaluate on the bundled digits, sentences and trees
	@echo "building the program (the first time takes some minutes)"
	cargo build --release --package maxmargin-cli
	@demo/run

test: ## everything: lint, all tests with the README's commands, the examples, the Python package
	@if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; \
	then $(MAKE) --no-print-directory lint; \
	else echo "rustfmt or clippy is missing (rustup component add rustfmt clippy): going on without 'make lint'"; fi
	cargo test
	cargo run --quiet --package maxmargin --example train_multiclass
	cargo run --quiet --package maxmargin --example own_task
	@$(MAKE) --no-print-directory test-python
	@$(MAKE) --no-print-directory referee PROGRAM=$(BUILT)/debug/maxmargin CASES=200
	@echo "all tests passed"

test-long: $(VENV)/ready ## what takes too long for each change: 5,000 cases of the referee, golden models on emulated CPUs
	cargo build --release --package maxmargin-cli
	@$(MAKE) --no-print-directory golden-cpus
	@$(MAKE) --no-print-directory referee PROGRAM=$(BUILT)/release/maxmargin CASES=5000

referee: $(VENV)/ready ## check what trainings claim: PROGRAM=target/release/maxmargin CASES=200 SEED=1 (see tests/referee)
	cd tests && $(abspath $(VENV))/bin/python -m referee --self-test
	cd tests && $(abspath $(VENV))/bin/python -m referee --program $(abspath $(PROGRAM)) --cases $(CASES) --seed $(SEED)

# A wheel of the profile that the tests above have compiled, in an environment of its own.
test-python: $(VENV)/ready ## the Python package: builds a wheel, installs it beside its friends, runs its tests and examples
	rm -rf $(VENV)/wheels
	$(VENV)/bin/maturin build --quiet --profile dev --out $(VENV)/wheels
	$(VENV)/bin/pip install --quiet --force-reinstall --no-deps $(VENV)/wheels/*.whl
	$(VENV)/bin/python -m pytest --quiet python/tests
	$(VENV)/bin/python -m pytest --quiet --doctest-modules --pyargs maxmargin
	@for example in python/examples/*.py; do echo "$$example"; $(VENV)/bin/python $$example >/dev/null || exit 1; done

$(VENV)/ready: pyproject.toml Makefile
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check "maturin>=1.9.4,<2" $(PYTHON_FRIENDS)
	@touch $@

golden: ## compare the bits of this build with an older one: BEFORE=path/to/older/maxmargin
	@test -n "$(BEFORE)" || { echo "which program is compared with? make golden BEFORE=path/to/older/maxmargin"; exit 1; }
	cargo build --release --package maxmargin-cli
	python3 tests/golden_builds.py $(BEFORE) $(BUILT)/release/maxmargin

golden-record: ## record the checksums of the golden models anew, where a change of the bits is meant
	MAXMARGIN_RECORD_GOLDEN=1 cargo test --quiet --package maxmargin-cli --test golden_models
	@git --no-pager diff --stat -- crates/maxmargin-cli/tests/golden_models.txt

golden-cpus: ## compare the golden models on emulated CPUs, old and new (needs qemu-x86_64; a minute)
	@command -v qemu-x86_64 >/dev/null || \
	{ echo "qemu-x86_64 is missing: install qemu-user (apt-get install qemu-user, dnf install qemu-user)"; exit 1; }
	cargo build --release --package maxmargin-cli
	python3 tests/golden_cpus.py $(BUILT)/release/maxmargin

docs: $(VENV)/ready ## render the user guide to target/site
	$(VENV)/bin/pip install --quiet --disable-pip-version-check properdocs
	$(VENV)/bin/properdocs build --quiet --strict --config-file mkdocs.yml --site-dir $(CURDIR)/target/site

wheel: $(VENV)/ready ## build the Python package for users: target/wheels/*.whl
	$(VENV)/bin/maturin build --release --out target/wheels

lint: ## format and clippy, warnings are errors
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings

bench: ## measure, and compare with others; ARGS="..." goes to bench/run
	@bench/run $(ARGS)

bench-long: ## the measurements that take over ten minutes each; allow two hours
	@bench/run --long $(ARGS)

bench-dask: ## training on a Dask cluster of this machine, against one process
	@bench/run --only dask-overhead,dask-processes,dask-loss $(ARGS)

fuzz: ## fuzz a reader: FUZZ_TARGET=svmlight|taxonomy|tagging|trees|graphs|alignments|substitutions|model FUZZ_SECONDS=60 (needs cargo-fuzz and nightly Rust)
	@cargo +nightly fuzz --version >/dev/null 2>&1 || \
	{ echo "fuzzing needs nightly Rust and cargo-fuzz: rustup toolchain install nightly; cargo install cargo-fuzz"; exit 1; }
	cargo +nightly fuzz run $(FUZZ_TARGET) -- -max_total_time=$(FUZZ_SECONDS)

doc: ## build the library's reference
	cargo doc --no-deps --workspace

install: ## install the program `maxmargin` with cargo
	cargo install --locked --path crates/maxmargin-cli

clean: ## remove what was built
	cargo clean
	rm -rf build
