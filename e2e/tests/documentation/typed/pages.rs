//! Every page with commands to type.

/// A page whose commands are typed.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its path in the repository.
    pub path: &'static str,
    /// The reader's working directory.
    pub at: At,
    /// Placeholders, and their values here.
    pub names: &'static [(&'static str, &'static str)],
    /// Text in a block, and what must be typed before such a block.
    pub before: &'static [(&'static str, &'static str)],
    /// Text in blocks that are skipped, and why.
    pub apart: &'static [(&'static str, &'static str)],
}

/// A reader's working directory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At {
    /// A copy of the repository.
    Repository,
    /// The page's own folder.
    Beside,
}

/// Pages that are skipped, and why.
#[rustfmt::skip]
const APART: [(&str, &str); 4] = [
    ("CONTRIBUTING.md", "CI calls most of them"),
    ("charts/nodegate/README.md", "docs/installation.md has the same"),
    ("docs/performance.md", "a benchmark takes its time"),
    ("docs/releasing.md", "make test-release"),
];

/// The skipped pages.
pub(crate) fn apart() -> impl Iterator<Item = &'static str> {
    APART.iter().map(|(path, _)| *path)
}

impl Page {
    /// Whether a block is skipped.
    pub(crate) fn leaves_out(&self, block: &str) -> bool {
        self.apart.iter().any(|(part, _)| block.contains(part))
    }

    /// What to type for a block: its preparation and the block itself, without placeholders.
    pub(crate) fn typed(&self, block: &str) -> String {
        let before = self.before.iter().filter(|(part, _)| block.contains(part));
        let before: Vec<&str> = before.map(|(_, command)| *command).collect();
        let mut typed = block.to_owned();
        for (name, stands_for) in self.names {
            typed = typed.replace(name, stands_for);
        }
        format!("{}\n{typed}", before.join("\n"))
    }

    /// The texts that must occur on the page.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &'static str> {
        let parts = self.names.iter().chain(self.before).chain(self.apart);
        parts.map(|(part, _)| *part)
    }
}

/// A page that is typed at the repository's root.
const fn page(path: &'static str) -> Page {
    Page {
        path,
        at: At::Repository,
        names: &[],
        before: &[],
        apart: &[],
    }
}

/// A page that is typed in its own folder.
const fn beside(path: &'static str) -> Page {
    Page {
        at: At::Beside,
        ..page(path)
    }
}

const RULE: (&str, &str) = ("RULE", "network-bootstrap");
const NODE: (&str, &str) = ("NODE", "worker-1");
const KEY: (&str, &str) = ("KEY", "example.com/network");
const A_TAINT: &str = "kubectl taint nodes --all example.com/network=:NoSchedule";
const A_RULE: &str = "kubectl apply -f config/samples/bootstrap-cni.yaml";
const A_DAEMON_SET: (&str, &str) = ("apply -f cilium.yaml", "cp 0.yaml cilium.yaml");
/// What releases nodes where no controller runs.
pub(crate) const BY_HAND: &str = "finalizers";
const DOCKER: (&str, &str) = ("docker build", "needs a container engine");
const CARGO_RUN: (&str, &str) = ("cargo run", "it would run until it is stopped");

/// Pages to type before an installation, in this order.
#[rustfmt::skip]
pub(crate) const BARE: [Page; 3] = [
    Page {
        before: &[
            ("rollout status", "helm uninstall nodegate --namespace nrr-system"),
            ("rollout status", "kubectl delete crd nodereadinessrules.readiness.node.x-k8s.io"),
            ("rollout status", "cp 0.yaml kustomization.yaml"),
        ],
        apart: &[("oci://", "make test-release installs from a registry"), DOCKER, CARGO_RUN],
        ..page("docs/installation.md")
    },
    Page {
        before: &[(
            "helm upgrade --install",
            "kubectl delete crd nodereadinessrules.readiness.node.x-k8s.io --ignore-not-found; \
             kubectl delete -k config/birth --ignore-not-found || echo 'the API server knows no such kind'",
        )],
        apart: &[("jq", "not everybody has jq")],
        ..page("docs/your-stack.md")
    },
    // It upgrades the release of the page before.
    Page { apart: &[("-k .", "docs/installation.md has the same")], ..page("docs/upgrade.md") },
];

/// Pages to type where Nodegate runs, in this order.
#[rustfmt::skip]
pub(crate) const INSTALLED: [Page; 34] = [
    Page {
        before: &[A_DAEMON_SET],
        apart: &[
            ("make demo", "CI calls it"),
            ("hack/try-cluster", "another test here runs it"),
            DOCKER,
            ("cargo install", "a release build takes minutes"),
        ],
        ..page("README.md")
    },
    Page {
        before: &[
            ("status.dryRunResults", "sed 's/network-2/network/; s/dryRun: true/dryRun: false/' 0.yaml > network.yaml"),
            ("status.dryRunResults", "kubectl apply -f network.yaml"),
            ("status.dryRunResults", "cp 0.yaml network-2.yaml"),
        ],
        ..page("docs/change-a-rule.md")
    },
    Page {
        names: &[("-n NS", "-n kube-system"), ("ds/NAME", "ds/cilium"), RULE],
        ..page("docs/conditions.md")
    },
    Page { apart: &[("nodegate preview", "tests/cli holds it to a cluster")], ..page("docs/gitops.md") },
    Page {
        names: &[NODE],
        before: &[A_DAEMON_SET, ("label node NODE example.com/first=yes", "cp 1.yaml first.yaml")],
        ..page("docs/first-rule.md")
    },
    Page {
        names: &[RULE, KEY],
        before: &[("delete nrr RULE", A_RULE), ("patch nrr RULE", A_RULE), ("taint nodes --all KEY-", A_TAINT)],
        apart: &[(BY_HAND, "another test types it where no controller runs")],
        ..page("docs/emergency.md")
    },
    Page {
        before: &[
            ("--from dump/", "kubectl nodegate dump dump"),
            ("suggest > rules.yaml", "kubectl -n kube-system set image daemonset/cilium main=quay.io/cilium/cilium:v1.18.0"),
        ],
        apart: &[
            ("explain", "tests/cli holds it to a cluster"),
            ("preview", "tests/cli holds it to a cluster"),
            ("startup node/", "tests/cli holds it to a cluster"),
        ],
        ..page("docs/kubectl.md")
    },
    Page { names: &[("manifests/", "config/samples/")], ..page("docs/kubectl/check.md") },
    Page { before: &[("apply -f istio-cni.yaml", "cp 0.yaml istio-cni.yaml")], ..page("docs/moving-in/gardener.md") },
    Page { names: &[RULE], before: &[("describe nrr RULE", A_RULE)], ..page("docs/observing.md") },
    Page { names: &[NODE], apart: &[("nodegate-controller", "it would run until it is stopped")], ..page("docs/repair.md") },
    page("docs/security.md"),
    Page {
        names: &[NODE, RULE],
        before: &[("describe nrr RULE", A_RULE), ("get nrr RULE", A_RULE)],
        apart: &[("logs deploy", "needs a kubelet")],
        ..page("docs/troubleshooting.md")
    },
    beside("examples/all-daemon-sets/README.md"),
    Page {
        before: &[("job-per-node.sh", "kubectl label nodes --all --overwrite example.com/pool=gpu")],
        ..beside("examples/check/README.md")
    },
    Page {
        names: &[("IMAGE=REGISTRY", "CALICO=~/nodegate/e2e/tests/fixtures/calico.yaml IMAGE=REGISTRY")],
        before: &[("sh apply-calico.sh", "kubectl -n kube-system delete daemonset calico-node")],
        ..page("examples/cni-readiness/README.md")
    },
    beside("examples/cni/README.md"),
    beside("examples/csi/README.md"),
    beside("examples/disruption/README.md"),
    beside("examples/dra/README.md"),
    beside("examples/gardener/README.md"),
    beside("examples/gpu/README.md"),
    beside("examples/in-order/README.md"),
    beside("examples/karpenter-repair/README.md"),
    Page { apart: &[("explain", "tests/examples holds it to a cluster")], ..beside("examples/mig/README.md") },
    beside("examples/node-problem-detector/README.md"),
    beside("examples/room-first/README.md"),
    beside("examples/security-agent/README.md"),
    beside("examples/startup-taint-removal/README.md"),
    beside("examples/startup-taints/README.md"),
    beside("examples/tolerations/README.md"),
    beside("examples/your-stack/README.md"),
    Page {
        before: &[
            ("apply --server-side --force-conflicts -k .", "cp 0.yaml kustomization.yaml"),
            ("-f crds.yaml", "cp ~/nodegate/e2e/tests/fixtures/upstream-crd.yaml crds.yaml"),
        ],
        apart: &[
            ("OLD-NAMESPACE", "needs the other project's chart"),
            ("--take-ownership", "needs the other project's chart"),
            ("node-readiness-controller/config", "needs the other project's source"),
            ("logs deployment", "needs a kubelet"),
            ("run nodegate-image", "needs a kubelet"),
        ],
        ..page("docs/moving-in/node-readiness-controller.md")
    },
    // Nothing serves this webhook, so no rule can be created after it.
    page("docs/webhook.md"),
];
