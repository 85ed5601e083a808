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
MANIFESTS = charts/nodegate/files
ALERTS = $(MANIFESTS)/prometheus/prometheus_rule.yaml
BENCH_BIN = $(or $(CARGO_TARGET_DIR),target)/release/bench
CRD = $(MANIFESTS)/crd/readiness.node.x-k8s.io_nodereadinessrules.yaml
# The book's source: the pages with all that they link to, in the places that they have here.
BOOK = target/book-src
# Tools that Cargo installs, and their versions.
TOOLS = target/tools/bin
VERSION_cargo-deny = @0.20.2
VERSION_cargo-mutants = @27.1.0
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
IMAGE ?= nodegate:$(VERSION)
CONTAINER_TOOL ?= docker
# The parts of a night.
PARTS ?= lab generated mutants protections earlier upgrade bench programs audit

# Tests wait for clusters most of the time: four for each core finish sooner than one.
export RUST_TEST_THREADS ?= $(shell expr 4 \* $$(getconf _NPROCESSORS_ONLN))

.DEFAULT_GOAL := help
.PHONY: help ci nightly lint audit test test-unit test-e2e test-node test-karpenter test-upstream test-release lab protections mutants bench demo cluster \
	generate book image release $(CLUSTER) controlplane binaries ready bench-controller bench-cli bench-micro bench-fleet bench-instructions \
	$(PARTS:%=nightly-%)

help: ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

# What is merged must not depend on chance: the simulation tries the same schedules each time, and the same rules are generated.
ci: export LAB_SEED = 7
ci: export GENERATED_SEED = 7
ci: ## Run all that has to be green before a change is merged; `audit` is apart, since its tools take minutes to install
	$(MAKE) lint
	$(MAKE) test
	@# Both wait most of the time, so they run at once.
	$(MAKE) --jobs=2 test-node test-karpenter

nightly: $(PARTS:%=nightly-%) ## Run what takes longer, on new schedules and new mutants, 5 hours; PARTS='lab mutants' are some of it

nightly-lab:
	$(MAKE) lab SECONDS=3600

nightly-generated:
	GENERATED_SECONDS=3600 $(MAKE) test-e2e T=generated

# Another part each night, all in two months.
nightly-mutants:
	$(MAKE) mutants SHARD=$$(($$(date +%-j) % 60))/60

nightly-protections: protections

nightly-earlier:
	$(MAKE) test-e2e KUBERNETES=1.34

nightly-upgrade: ready
	hack/test-upgrade

nightly-bench:
	$(MAKE) bench BENCH=--quick

# Needs what no other test does: valgrind, Chromium, fish and zsh.
nightly-programs: ready bench-instructions
	$(TEST) --test cli -- --ignored

nightly-audit: audit

lint: ## Check formatting, that versions agree and docs stay short, and run clippy with warnings as errors
	hack/versions
	hack/words
	$(CARGO) fmt --all --check
	@# By itself, without what other members have Cargo add to the same crates.
	! $(CARGO) tree --package nodegate-core --edges normal --prefix none | grep -E '^(axum|hyper|kube-client|kube-runtime|tokio) '
	$(CARGO) clippy --workspace --all-targets -- -D warnings

audit: $(TOOLS)/cargo-deny ## Check licences, sources and advisories of dependencies, and the workflows; needs the network, and pipx
	PATH="$(CURDIR)/$(TOOLS):$$PATH" $(CARGO) deny check
	pipx run zizmor==1.32.0 --offline .github

$(TOOLS)/%:
	$(CARGO) install --root target/tools --locked $*$(VERSION_$*)

test: ## Run every test, against a real control plane; KUBERNETES=1.34 is an earlier one
	$(MAKE) --no-print-directory --jobs=2 controlplane test-unit
	$(MAKE) --no-print-directory test-e2e

test-unit: $(CLUSTER) ## Run the tests that need no control plane
	$(TEST) --lib --bins --test allocations
	$(TEST) --doc

test-e2e: ready ## Run the tests against a real control plane, and the simulation's; T='metrics cli' runs those alone
	hack/test-e2e $(T)

# Each test has a control plane and a node of its own, which take as much as several of the others.
test-node: ready ## Run the tests on a real node: kubelet, containerd, runc, CNI, CSI, in namespaces; needs a C compiler
	$(REALNODE) build
	$(REALNODE) check
	RUST_TEST_THREADS=2 $(TEST) --test node

test-karpenter: ready ## Run the tests beside a real Karpenter: repair, consolidation, drift, drains
	$(CLUSTER) build karpenter
	$(TEST) --test karpenter

# Its module is on no proxy, so its source comes from a checkout.
test-upstream: ready ## Go back to the real Node Readiness Controller, built of a checkout of its source: UPSTREAM=folder
	cd $(UPSTREAM) && CGO_ENABLED=0 go build -o $(CURDIR)/target/upstream-controller ./cmd
	UPSTREAM_CONTROLLER=$(CURDIR)/target/upstream-controller $(TEST) --test definitions -- --ignored

test-release: ## Make a release, take it to a real registry, and install it from there (an hour and more); hack/test-release tells more
	hack/release-needs
	$(MAKE) ready
	$(CLUSTER) build helm
	$(REALNODE) build
	$(REALNODE) check
	CLUSTER=$(CLUSTER) hack/test-release

lab: ## Break simulated clusters around the engine for a minute, or SECONDS=3600; LAB='--help' tells more
	$(CARGO) run --profile lab --package nodegate-simulation --bin lab -- --seconds $(or $(SECONDS),60) $(LAB)

# One build has them all, each behind a switch.
protections: ## Take each protection out of the engine and see that a law of the simulation breaks (some minutes)
	$(TEST) --test protections -- --ignored --nocapture

# A mutant takes as long as to build its crate and run the crate's tests.
mutants: $(TOOLS)/cargo-mutants ## Change the code that decides in small ways and see that a test notices; SHARD=3/60 is another part of them
	PATH="$(CURDIR)/$(TOOLS):$$PATH" $(CARGO) mutants --package nodegate-core --package nodegate-engine --output target \
		--shard $(or $(SHARD),0/60) $(MUTANTS)

bench: ## Measure the controller (10 minutes and more, BENCH='--help' tells more), or W=cli, micro, fleet or instructions
	$(MAKE) --no-print-directory bench-$(or $(W),controller)

# Figures of builds without optimization say nothing.
bench-controller: controlplane
	$(CARGO) build --release --package nodegate-controller --package nodegate-bench --bin nodegate-controller --bin bench
	$(BENCH_BIN) $(BENCH)

# The commands of kubectl nodegate with 5,000 nodes and 15,000 critical pods.
bench-cli: controlplane
	$(CARGO) build --release --package nodegate-controller --package kubectl-nodegate --package nodegate-bench --bin nodegate-controller --bin kubectl-nodegate --bin bench-cli
	$(BENCH_BIN)-cli $(BENCH)

# Single decisions, those for a hostile node too, and the decoding of one node: nanoseconds and allocations.
bench-micro:
	$(CARGO) test --release --package nodegate-core --lib object::tests::budget
	$(CARGO) test --release --package nodegate-engine --lib tests::bounds -- --show-output
	$(CARGO) bench --package nodegate-benches --bench decide --bench hostile --bench decode

# The engine alone with a whole fleet.
bench-fleet:
	$(CARGO) bench --quiet --package nodegate-benches --bench fleet -- $(or $(NODES),100000) $(or $(RULES),2)

# The instructions of single decisions, held to their bounds; needs valgrind.
bench-instructions:
	$(CARGO) bench --quiet --package nodegate-benches --profile dev --bench instructions

demo: ## Show what Nodegate does; KEEP=1 leaves the cluster running
	@hack/demo $(if $(KEEP),--keep)

cluster: controlplane ## Run a cluster by hand until Ctrl-C, with the CRD and RBAC installed
	$(CLUSTER) up --apply config/crd --apply config/rbac

# Has Go build the rest. Cargo builds one thing at a time, so this comes before the Rust that is built beside it.
$(CLUSTER):
	$(BUILD) --bin cluster

# The Kubernetes components (minutes the first time, then cached).
controlplane: $(CLUSTER)
	$(CLUSTER) build

binaries: $(CLUSTER)
	$(BUILD) $(BINS)

# What the demo and most tests need, Go and Rust at the same time. BINS are the binaries, all by default.
ready:
	$(MAKE) --no-print-directory --jobs=2 controlplane binaries BINS='$(BINS)'

generate: ## Generate the CRD, the reference pages, the PrometheusRule and the chart's table of values from their sources
	$(GENERATE) crd > $(CRD).new
	mv $(CRD).new $(CRD)
	$(GENERATE) reference docs/reference
	{ sed '/^spec:/q' $(ALERTS); sed -e '/^#/d' -e 's/^./  &/' config/prometheus/alerts.yaml; } > $(ALERTS).new
	mv $(ALERTS).new $(ALERTS)
	hack/chart-readme

book: generate $(TOOLS)/mdbook ## Build the documentation as a book, in target/book
	rm -rf $(BOOK)
	mkdir -p $(BOOK)
	cp -r README.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md LICENSE SECURITY.md .github docs examples config charts $(BOOK)
	mv $(BOOK)/docs/book.toml $(BOOK)
	sed -e 's#](#](docs/#' -e 's#](docs/\.\./#](#' docs/SUMMARY.md > $(BOOK)/SUMMARY.md
	printf -- '---\n\n[All pages](docs/SUMMARY.md)\n' >> $(BOOK)/SUMMARY.md
	@# A book lists no folders.
	find $(BOOK) -name '*.md' -exec sed -i -E 's#\]\(((\.\./)*(config|charts/nodegate/files)(/[a-z-]+)+)/?\)#](\1/kustomization.yaml)#g' {} +
	$(TOOLS)/mdbook build $(BOOK)

image: ## Build the image that a release has, and load it as IMAGE; CONTAINER_TOOL=podman for Podman, hack/image tells more
	CONTAINER_TOOL=$(CONTAINER_TOOL) hack/image $(IMAGE)

release: ## Make a release in dist/: VERSION=1.2.3, REGISTRY=registry.example.com/nodegate; hack/release tells more
	hack/release-needs $(VERSION)
	$(MAKE) controlplane
	$(CLUSTER) build helm
	CLUSTER=$(CLUSTER) hack/release $(VERSION)
