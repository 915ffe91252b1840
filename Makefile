# `make demo` and `make test` need Rust and nothing else: no cluster, no kubectl. `make e2e` and `make lab` need Go, too.
# Every recipe is one that you can type; there is no state between targets.

.POSIX:
.PHONY: help demo test e2e lab lab-down lint doc build

CARGO = cargo

help:
	@echo 'make demo   watch drains with VMs on a simulated cluster (a minute, after the build)'
	@echo 'make test   run all tests that need no cluster'
	@echo 'make e2e    run drains on a real control plane with real KubeVirt (Go 1.26; minutes to build once)'
	@echo 'make lab    start such a cluster and leave it running; make lab-down stops it'
	@echo 'make lint   format, clippy, documentation, licences of dependencies'
	@echo 'make doc    build the code documentation'
	@echo 'make build  build the plugin: target/release/kubectl-safe_drain'

demo:
	CARGO='$(CARGO)' sh tests/demo.sh

test:
	$(CARGO) test --workspace --locked

# tests/lab/README.md says what this builds and runs.
e2e:
	@if [ "$$SAFE_DRAIN_E2E" = skip ]; then \
		echo 'SAFE_DRAIN_E2E=skip: nothing was run on a real control plane'; \
	else \
		set -ex; \
		$(CARGO) build --workspace --bins --locked; \
		tests/lab/lab build; \
		tests/lab/lab run $(CARGO) test --locked --test flows -- --ignored --test-threads=6; \
	fi

lab:
	@$(CARGO) build --workspace --bins --locked
	@tests/lab/lab up

lab-down:
	tests/lab/lab down

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
