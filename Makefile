# Everything is reachable from here; `make` lists it.

CARGO ?= cargo
DEBUG = $(or $(CARGO_TARGET_DIR),target)/debug
# Always the whole workspace: what its packages depend on is then built with the same features, and so once. MAKEFLAGS= has Cargo
# count its own jobs, where make's --jobs says no more than that Go builds beside it.
BUILD = MAKEFLAGS= $(CARGO) build --workspace
CLUSTER = $(DEBUG)/cluster
GENERATE = $(BUILD) --quiet --bin nodegate-generate && $(DEBUG)/nodegate-generate
REALNODE = $(BUILD) --quiet --bin realnode && $(DEBUG)/realnode
TEST = MAKEFLAGS= $(CARGO) test --workspace
# The tests in the files and folders of a folder.
tests-in = $(addprefix --test ,$(basename $(notdir $(wildcard $(1)/*.rs) $(patsubst %/main.rs,%,$(wildcard $(1)/*/main.rs)))))
MANIFESTS = charts/nodegate/files
ALERTS = $(MANIFESTS)/prometheus/prometheus_rule.yaml
BENCH_BIN = $(or $(CARGO_TARGET_DIR),target)/release/bench
CRD = $(MANIFESTS)/crd/readiness.node.x-k8s.io_nodereadinessrules.yaml
# The book's source: the pages with all that they link to, in the places that they have here.
BOOK = target/book-src
DENY = PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo-deny
DENY_VERSION = 0.20.2
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
IMAGE ?= nodegate:$(VERSION)
CONTAINER_TOOL ?= docker

# Tests wait for clusters most of the time: four for each core finish sooner than one.
export RUST_TEST_THREADS ?= $(shell expr 4 \* $$(getconf _NPROCESSORS_ONLN))

.DEFAULT_GOAL := help
.PHONY: help ready controlplane $(CLUSTER) prometheus helm cert-manager karpenter realnode build test test-unit test-e2e test-metrics test-reporter test-webhook test-ha test-cli test-docs test-report \
	test-safety test-generated test-install test-upgrade test-node test-karpenter namespaces lab protections mutants demo bench bench-cli bench-binaries bench-micro bench-fleet bench-instructions cluster generate \
	install.yaml static image release release-tools push sign sign-keyless publish test-release book workflows lint deny-tool deny deny-advisories clean

help: ## List the targets
	@sed -n 's/^\([a-z0-9.-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

# Has Go build the rest. Cargo builds one thing at a time, so this comes before the Rust that is built beside it.
$(CLUSTER):
	$(BUILD) --bin cluster

# What the demo and most tests need, Go and Rust at the same time. BINS are the binaries, all by default.
ready:
	$(MAKE) --no-print-directory --jobs=2 controlplane build BINS='$(BINS)'

controlplane: $(CLUSTER) ## Build the Kubernetes components for tests and demo (minutes the first time, then cached)
	$(CLUSTER) build

prometheus: $(CLUSTER) ## Build Prometheus and promtool for tests (minutes the first time, then cached)
	$(CLUSTER) build prometheus

helm: $(CLUSTER) ## Build Helm for tests (minutes the first time, then cached)
	$(CLUSTER) build helm

cert-manager: $(CLUSTER) ## Build what cert-manager needs to issue a certificate, for tests (minutes the first time, then cached)
	$(CLUSTER) build cert-manager

karpenter: $(CLUSTER) ## Build Karpenter with its kwok provider for tests (minutes the first time, then cached)
	$(CLUSTER) build karpenter

realnode: ## Build kubelet, containerd and runc for tests (minutes the first time, then cached; needs a C compiler)
	$(REALNODE) build
	$(REALNODE) check

build: $(CLUSTER) ## Build everything
	$(BUILD) $(BINS)

test: ## Run every test, against a real control plane; KUBERNETES=1.34 is an earlier one
	$(MAKE) --no-print-directory --jobs=2 controlplane test-unit
	$(MAKE) --no-print-directory test-e2e

test-unit: $(CLUSTER) ## Run the tests that need no control plane
	$(TEST) --lib --bins $(call tests-in,tests)
	$(TEST) --doc

test-e2e: ready ## Run the tests against a real control plane, and the laboratory's
	hack/test-e2e

test-metrics: ready prometheus ## Run the tests of metrics, alerts and dashboard, with a real Prometheus
	$(TEST) --test metrics

test-reporter: ready ## Run the tests of the reporter and of the admission policies
	$(TEST) --test reporter --test policy

test-webhook: ready ## Run the tests of the webhook, of what the API server validates, and of slow clients
	$(TEST) --test webhook --test definitions --test slow_clients

test-ha: ready ## Run the tests of leader election, and of outages and restarts
	$(TEST) --test leadership --test outages

test-cli: ready ## Run the tests of kubectl nodegate, against a real control plane; UPDATE_GOLDEN=1 writes the blocks in docs anew
	$(TEST) --lib cli::
	$(TEST) --test cli

# Tests that need a browser are not among the others.
test-report: ready ## Open a report in a headless Chromium, or BROWSER=...
	$(TEST) --test cli -- --ignored page::

test-safety: ready ## Run the tests of rules and of repair
	$(TEST) --test rules --test repair

test-install: ready helm cert-manager ## Run the tests of the manifests, the permissions and the chart
	$(TEST) --test install

test-upgrade: ready ## Upgrade from an earlier commit and back: BEFORE=COMMIT, the latest tag by default
	hack/test-upgrade $(BEFORE)

test-generated: ready ## Try rules made from the CRD's schema for a minute, or SECONDS=3600; SEED=... repeats what that made
	GENERATED_SECONDS='$(SECONDS)' GENERATED_SEED='$(SEED)' $(TEST) --test generated -- --nocapture

test-docs: ready helm ## Type what the documentation has its readers type, and apply its manifests and examples
	$(TEST) --test documentation --test typed --test examples

# Each test has a control plane and a node of its own, which take as much as several of the others.
test-node: ready realnode ## Run the tests on a real node: kubelet, containerd, runc, CNI, CSI, in namespaces
	RUST_TEST_THREADS=2 $(TEST) --test node

test-karpenter: ready karpenter ## Run the tests beside a real Karpenter: repair, consolidation, drift, drains
	$(TEST) --test karpenter

namespaces: ## Let users make namespaces where Ubuntu's AppArmor does not (needs root, by sudo)
	sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0

lab: ## Break simulated clusters around the engine for a minute, or SECONDS=3600; LAB='--help' tells more
	$(CARGO) run --profile lab --package nodegate-lab --bin lab -- --seconds $(or $(SECONDS),60) $(LAB)

# One build has them all, each behind a switch.
protections: ## Take each protection out of the engine and see that a law of the laboratory breaks (some minutes)
	$(TEST) --test protections -- --ignored --nocapture

# One mutant is one build; a hundredth of them takes some minutes. Laws that are broken need not be made small.
mutants: ## Change the code that decides in small ways and see that a test notices; SHARD=3/100 takes others; needs cargo-mutants
	CARGO_PROFILE_DEV_DEBUG=0 PROPTEST_MAX_SHRINK_ITERS=0 \
		$(CARGO) mutants --package nodegate --shard $(or $(SHARD),0/100) --sharding round-robin --output target $(MUTANTS)

demo: ## Show what Nodegate does; KEEP=1 leaves the cluster running
	@hack/demo $(if $(KEEP),--keep)

# Figures of builds without optimization say nothing.
bench-binaries: controlplane
	$(CARGO) build --release --package nodegate --package nodegate-bench --bin nodegate-controller --bin bench

bench: bench-binaries ## Measure the controller with 300 and 1,000 nodes (10 minutes and more); BENCH='--help' tells more
	$(BENCH_BIN) $(BENCH)

bench-cli: controlplane ## Measure the commands of kubectl nodegate with 5,000 nodes and 15,000 critical pods (some minutes)
	$(CARGO) build --release --package nodegate --package nodegate-bench --bin nodegate-controller --bin kubectl-nodegate --bin bench-cli
	$(BENCH_BIN)-cli $(BENCH)

bench-micro: ## Measure single decisions, those for a hostile node too, and the decoding of one node: nanoseconds and allocations
	$(CARGO) test --release --package nodegate --lib engine::tests::bounds
	$(CARGO) bench --package nodegate --bench decide --bench hostile --bench decode

bench-fleet: ## Measure the engine alone with a whole fleet: NODES=100000 RULES=2
	$(CARGO) bench --quiet --package nodegate --bench fleet -- $(or $(NODES),100000) $(or $(RULES),2)

bench-instructions: ## Count the instructions of single decisions, and hold them to their bounds; needs valgrind
	$(CARGO) bench --quiet --package nodegate --profile dev --bench instructions

cluster: controlplane ## Run a cluster by hand until Ctrl-C, with the CRD and RBAC installed
	$(CLUSTER) up --apply config/crd --apply config/rbac

generate: ## Generate the CRD, the reference pages, the PrometheusRule and the chart's table of values from their sources
	$(GENERATE) crd > $(CRD).new
	mv $(CRD).new $(CRD)
	$(GENERATE) reference docs/reference
	{ sed '/^spec:/q' $(ALERTS); sed -e '/^#/d' -e 's/^./  &/' config/prometheus/alerts.yaml; } > $(ALERTS).new
	mv $(ALERTS).new $(ALERTS)
	hack/chart-readme

book: generate ## Build the documentation as a book, in target/book
	test -x target/tools/bin/mdbook || $(CARGO) install --root target/tools mdbook --locked
	rm -rf $(BOOK)
	mkdir -p $(BOOK)
	cp -r README.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md LICENSE SECURITY.md .github docs examples config charts $(BOOK)
	mv $(BOOK)/docs/book.toml $(BOOK)
	sed -e 's#](#](docs/#' -e 's#](docs/\.\./#](#' docs/SUMMARY.md > $(BOOK)/SUMMARY.md
	printf -- '---\n\n[All pages](docs/SUMMARY.md)\n' >> $(BOOK)/SUMMARY.md
	@# A book lists no folders.
	find $(BOOK) -name '*.md' -exec sed -i -E 's#\]\(((\.\./)*(config|charts/nodegate/files)(/[a-z-]+)+)/?\)#](\1/kustomization.yaml)#g' {} +
	target/tools/bin/mdbook build $(BOOK)

install.yaml: controlplane ## Write the manifests of a release into dist/; IMAGE=registry.example.com/nodegate:0.1.0 names yours
	@mkdir -p dist
	image='$(IMAGE)'; printf '%s\n' 'resources: [../config/default]' \
		"images: [{name: nodegate, newName: $${image%:*}, newTag: \"$${image##*:}\"}]" > dist/kustomization.yaml
	$(CLUSTER) kubectl kustomize dist > dist/install.yaml.new
	$(CLUSTER) kubectl kustomize config/crd > dist/crds.yaml
	mv dist/install.yaml.new dist/install.yaml

static: ## Build the static binaries that images have, and run them in an empty folder (needs root)
	hack/check-static "$$(hack/build-static amd64)"

image: ## Build the image that a release has, and load it as IMAGE; CONTAINER_TOOL=podman for Podman, hack/image tells more
	CONTAINER_TOOL=$(CONTAINER_TOOL) hack/image $(IMAGE)

release: ## Make a release in dist/: VERSION=1.2.3, REGISTRY=registry.example.com/nodegate; hack/release tells more
	hack/release-needs $(VERSION)
	$(MAKE) controlplane helm
	CLUSTER=$(DEBUG)/cluster hack/release $(VERSION)

sign: ## Sign the release in dist/: SIGNING_KEY=key.pem; hack/sign tells more
	hack/sign

release-tools: ## Install what a release needs beside Rust and Go: C compilers, cargo-zigbuild, zig (Debian and Ubuntu; needs root)
	hack/release-tools

push: ## Take image and chart of the release in dist/ to REGISTRY; hack/push tells more
	hack/registry-login hack/push $(VERSION)

sign-keyless: ## Sign the release in dist/, and its image at REGISTRY, by a workflow's identity; needs cosign
	hack/registry-login hack/sign-keyless

publish: ## Make a release of dist/ on GitHub; needs gh
	gh release create "v$(VERSION)" --verify-tag --title "$(VERSION)" --notes-file dist/RELEASE_NOTES.md dist/*

test-release: ## Make a release, take it to a real registry, and install it from there, on a real node, too (an hour and more; REBUILD=no leaves out the second build, PLUGINS=linux those for macOS and Windows)
	hack/release-needs
	$(MAKE) ready helm realnode
	CLUSTER=$(DEBUG)/cluster hack/test-release

workflows: ## Audit the workflows; needs pipx
	pipx run zizmor==1.32.0 --offline .github

lint: ## Check formatting, that versions agree and docs stay short, and run clippy with warnings as errors
	hack/versions
	hack/words
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# Installing takes some minutes, so it is asked for.
deny-tool:
	@command -v cargo-deny >/dev/null || test -x target/tools/bin/cargo-deny || { test -n '$(INSTALL)' \
		&& $(CARGO) install --root target/tools --locked cargo-deny@$(DENY_VERSION); } \
		|| { echo 'there is no cargo-deny: cargo install --locked cargo-deny@$(DENY_VERSION), or INSTALL=1 for target/tools' >&2; exit 1; }

deny: deny-tool ## Hold the dependencies to deny.toml: licences, bans, sources; needs cargo-deny, INSTALL=1 gets it
	$(DENY) check licenses bans sources

deny-advisories: deny-tool ## Ask the RustSec database about the dependencies; needs cargo-deny and the network
	$(DENY) check advisories

clean: ## Remove build output (the cached control plane stays)
	$(CARGO) clean
