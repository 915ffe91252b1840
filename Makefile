# `make demo` and `make test` need Rust and nothing else: no cluster, no kubectl.
# Every recipe is one that you can type; there is no state between targets.

.POSIX:
.PHONY: help demo test lint doc build

CARGO = cargo

help:
	@echo 'make demo   watch drains with VMs on a simulated cluster (a minute, after the build)'
	@echo 'make test   run all tests'
	@echo 'make lint   format, clippy, documentation, licences of dependencies'
	@echo 'make doc    build the code documentation'
	@echo 'make build  build the plugin: target/release/kubectl-safe_drain'

demo:
	CARGO='$(CARGO)' sh tests/demo.sh

test:
	$(CARGO) test --workspace --locked

lint: doc
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@if command -v cargo-deny >/dev/null 2>&1; then \
		echo '$(CARGO) deny check bans licenses sources'; \
		$(CARGO) deny check bans licenses sources; \
	else \
		echo 'cargo-deny is not installed: dependencies and their licences were not checked'; \
	fi

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

build:
	$(CARGO) build --release --locked
