# Everything is reachable from here; `make` lists it.

CARGO ?= cargo
CLUSTER = $(CARGO) run --package nodegate-e2e --bin cluster --
ALERTS = config/prometheus
BENCH_BIN = $(or $(CARGO_TARGET_DIR),target)/release/bench
CRD = config/crd/bases/readiness.node.x-k8s.io_nodereadinessrules.yaml

.DEFAULT_GOAL := help
.PHONY: help controlplane prometheus build test test-unit test-e2e test-metrics test-reporter test-webhook test-ha \
	test-safety demo demo-outage bench \
	bench-full bench-binaries bench-micro cluster crd docs book alerts lint clean

help: ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

controlplane: ## Build the Kubernetes components for tests and demo (minutes the first time, then cached)
	$(CLUSTER) build

prometheus: ## Build Prometheus and promtool for tests (minutes the first time, then cached)
	$(CLUSTER) build --prometheus

build: ## Build everything
	$(CARGO) build --workspace

test: controlplane prometheus build ## Run every test, against a real control plane
	$(CARGO) test --workspace

test-unit: ## Run the tests that need no control plane
	$(CARGO) test --package nodegate
	$(CARGO) test --package nodegate-e2e --lib

test-e2e: controlplane prometheus build ## Run the tests against a real control plane
	$(CARGO) test --package nodegate-e2e

test-metrics: controlplane prometheus build ## Run the tests of metrics, alerts and dashboard, with a real Prometheus
	$(CARGO) test --package nodegate-e2e --test metrics

test-reporter: controlplane build ## Run the tests of the reporter and of the admission policies
	$(CARGO) test --package nodegate-e2e --test reporter --test policy

test-webhook: controlplane build ## Run the tests of the webhook, and of what the API server validates
	$(CARGO) test --package nodegate-e2e --test webhook --test validation

test-ha: controlplane build ## Run the tests of leader election, and of outages and restarts
	$(CARGO) test --package nodegate-e2e --test leadership --test outages

test-safety: controlplane build ## Run the tests of grace periods, silent reporters, reboots, disruption limits and repair
	$(CARGO) test --package nodegate-e2e --test safety --test repair

demo: controlplane build ## Show what Nodegate does; KEEP=1 leaves the cluster running
	$(CARGO) run --quiet --package nodegate-e2e --bin demo -- $(if $(KEEP),--keep)

demo-outage: controlplane build ## Show an outage with and without a disruption limit; KEEP=1 leaves the cluster running
	$(CARGO) run --quiet --package nodegate-e2e --bin demo-outage -- $(if $(KEEP),--keep)

# Figures of builds without optimization say nothing.
bench-binaries: controlplane
	$(CARGO) build --release --package nodegate --package nodegate-e2e --bin nodegate --bin bench

bench: bench-binaries ## Measure the controller with 300 and 1,000 nodes (5 minutes); BENCH='--help' tells more
	$(BENCH_BIN) $(BENCH)

bench-full: bench-binaries ## Measure it with up to 10,000 nodes (half an hour), and write docs/performance anew
	$(BENCH_BIN) --nodes 100,300,1000,3000,10000 --out docs/performance $(BENCH)

bench-micro: ## Measure single decisions: nanoseconds and allocations
	$(CARGO) bench --package nodegate --bench decide

cluster: controlplane ## Run a cluster by hand until Ctrl-C, with the CRD and RBAC installed
	$(CLUSTER) up --crd

crd: ## Generate the CRD from the Rust types
	@mkdir -p $(dir $(CRD))
	$(CARGO) run --quiet -- crd > $(CRD).new
	mv $(CRD).new $(CRD)

docs: ## Generate the reference pages from the code
	$(CARGO) run --quiet -- reference docs/reference

book: docs ## Build the documentation as a book, in target/book
	test -x target/tools/bin/mdbook || $(CARGO) install --root target/tools mdbook --locked
	target/tools/bin/mdbook build docs

alerts: ## Generate prometheus-operator's PrometheusRule from the alerting rules
	{ sed '/^spec:/q' $(ALERTS)/prometheus_rule.yaml; sed -e '/^#/d' -e 's/^./  &/' $(ALERTS)/alerts.yaml; } > $(ALERTS)/prometheus_rule.yaml.new
	mv $(ALERTS)/prometheus_rule.yaml.new $(ALERTS)/prometheus_rule.yaml

lint: ## Check formatting, and run clippy with warnings as errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

clean: ## Remove build output (the cached control plane stays)
	$(CARGO) clean
