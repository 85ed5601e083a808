# Everything is reachable from here; `make` lists it.

CARGO ?= cargo
CLUSTER = $(CARGO) run --package nodegate-e2e --bin cluster --
ALERTS = config/prometheus
CRD = config/crd/bases/readiness.node.x-k8s.io_nodereadinessrules.yaml
CHART = charts/nodegate
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
IMAGE ?= nodegate:$(VERSION)
CONTAINER_TOOL ?= docker
PLATFORMS ?= linux/amd64

.DEFAULT_GOAL := help
.PHONY: help controlplane prometheus helm build test test-unit test-e2e test-metrics test-install demo cluster crd alerts \
	chart install.yaml image lint clean

help: ## List the targets
	@sed -n 's/^\([a-z0-9.-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

controlplane: ## Build the Kubernetes components for tests and demo (minutes the first time, then cached)
	$(CLUSTER) build

prometheus: ## Build Prometheus and promtool for tests (minutes the first time, then cached)
	$(CLUSTER) build --prometheus

helm: ## Build Helm for tests (minutes the first time, then cached)
	$(CLUSTER) build --helm

build: ## Build everything
	$(CARGO) build --workspace

test: controlplane prometheus helm build ## Run every test, against a real control plane
	$(CARGO) test --workspace

test-unit: ## Run the tests that need no control plane
	$(CARGO) test --package nodegate
	$(CARGO) test --package nodegate-e2e --lib

test-e2e: controlplane prometheus helm build ## Run the tests against a real control plane
	$(CARGO) test --package nodegate-e2e

test-metrics: controlplane prometheus build ## Run the tests of metrics, alerts and dashboard, with a real Prometheus
	$(CARGO) test --package nodegate-e2e --test metrics

test-install: controlplane helm build ## Run the tests of the manifests and the chart
	$(CARGO) test --package nodegate-e2e --test install

demo: controlplane build ## Show what Nodegate does; KEEP=1 leaves the cluster running
	$(CARGO) run --quiet --package nodegate-e2e --bin demo -- $(if $(KEEP),--keep)

cluster: controlplane ## Run a cluster by hand until Ctrl-C, with the CRD and RBAC installed
	$(CLUSTER) up --crd

crd: ## Generate the CRD from the Rust types
	@mkdir -p $(dir $(CRD))
	$(CARGO) run --quiet -- crd > $(CRD).new
	mv $(CRD).new $(CRD)
	$(MAKE) chart

alerts: ## Generate prometheus-operator's PrometheusRule from the alerting rules
	{ sed '/^spec:/q' $(ALERTS)/prometheus_rule.yaml; sed -e '/^#/d' -e 's/^./  &/' $(ALERTS)/alerts.yaml; } > $(ALERTS)/prometheus_rule.yaml.new
	mv $(ALERTS)/prometheus_rule.yaml.new $(ALERTS)/prometheus_rule.yaml
	$(MAKE) chart

chart: ## Copy into the chart what config/ has already: CRD, permissions, webhook, alerts
	rm -rf $(CHART)/crds $(CHART)/files
	mkdir -p $(CHART)/crds $(CHART)/files
	cp $(CRD) $(CHART)/crds/nodereadinessrules.readiness.node.x-k8s.io.yaml
	cp -R config/rbac config/manager config/webhook config/prometheus $(CHART)/files/
	cp config/components/webhook/network_policy.yaml $(CHART)/files/webhook/
	cd $(CHART)/files && rm */kustomization.yaml rbac/namespace.yaml manager/deployment.yaml prometheus/alerts*.yaml

install.yaml: controlplane ## Write the manifests of a release into dist/; IMAGE=registry.example.com/nodegate:0.1.0 names yours
	@mkdir -p dist
	image='$(IMAGE)'; printf '%s\n' 'resources: [../config/default]' \
		"images: [{name: nodegate, newName: $${image%:*}, newTag: \"$${image##*:}\"}]" > dist/kustomization.yaml
	$(CLUSTER) kubectl kustomize dist > dist/install.yaml.new
	$(CLUSTER) kubectl kustomize config/crd > dist/crds.yaml
	mv dist/install.yaml.new dist/install.yaml

image: ## Build the container image IMAGE; PLATFORMS=linux/amd64,linux/arm64 for both, CONTAINER_TOOL=podman for Podman
	$(CONTAINER_TOOL) build --platform $(PLATFORMS) --tag $(IMAGE) .

lint: ## Check formatting, and run clippy with warnings as errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

clean: ## Remove build output (the cached control plane stays)
	$(CARGO) clean
