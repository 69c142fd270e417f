# `make` alone lists the targets.

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench bench-long fuzz doc install clean

# What `make fuzz` runs, and for how long.
FUZZ_TARGET ?= svmlight
FUZZ_SECONDS ?= 60

help: ## list the targets
	@echo "make targets:"
	@sed -n 's/^\([a-z-]*\):.*## /\1:/p' Makefile | while IFS=: read -r name what; do printf '  %-10s %s\n' "$$name" "$$what"; done

demo: ## build, then train, predict and evaluate on the bundled digits, sentences and trees
	@echo "building the program (the first time takes some minutes)"
	cargo build --release --package maxmargin-cli
	@demo/run

test: ## everything: lint, all tests with the README's commands, the examples
	@if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; \
	then $(MAKE) --no-print-directory lint; \
	else echo "rustfmt or clippy is missing (rustup component add rustfmt clippy): going on without 'make lint'"; fi
	cargo test --workspace
	cargo run --quiet --package maxmargin --example train_multiclass
	cargo run --quiet --package maxmargin --example own_task
	@echo "all tests passed"

lint: ## format and clippy, warnings are errors
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings

bench: ## measure, and compare with others; ARGS="..." goes to bench/run
	@bench/run $(ARGS)

bench-long: ## the measurements that take over ten minutes each; allow two hours
	@bench/run --long $(ARGS)

fuzz: ## fuzz a reader: FUZZ_TARGET=svmlight|taxonomy|tagging|trees|graphs|model FUZZ_SECONDS=60 (needs cargo-fuzz and nightly Rust)
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
