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
const APART: [(&str, &str); 4] = [
    ("CONTRIBUTING.md", "CI calls most of them"),
    (
        "charts/nodegate/README.md",
        "docs/installation.md has the same",
    ),
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

const fn page(path: &'static str, at: At) -> Page {
    Page {
        path,
        at,
        names: &[],
        before: &[],
        apart: &[],
    }
}

const RULE: (&str, &str) = ("RULE", "network-bootstrap");
const NODE: (&str, &str) = ("NODE", "worker-1");
const KEY: &str = "example.com/network";
const A_TAINT: &str = "kubectl taint nodes --all example.com/network=:NoSchedule";
const A_RULE: &str = "kubectl apply -f config/samples/bootstrap-cni.yaml";

/// Pages to type before an installation, in this order.
pub(crate) const BARE: [Page; 3] = [
    Page {
        names: &[RULE, ("KEY", KEY)],
        before: &[
            (
                "rollout status",
                "helm uninstall nodegate --namespace nrr-system",
            ),
            (
                "rollout status",
                "kubectl delete crd nodereadinessrules.readiness.node.x-k8s.io",
            ),
            ("rollout status", "cp 0.yaml kustomization.yaml"),
            (
                "custom-columns",
                "kubectl apply --server-side -k config/crd",
            ),
            ("custom-columns", A_RULE),
            ("custom-columns", A_TAINT),
        ],
        apart: &[
            ("oci://", "make test-release installs from a registry"),
            ("docker build", "needs a container engine"),
            ("cargo run", "it would run until it is stopped"),
        ],
        ..page("docs/installation.md", At::Repository)
    },
    Page {
        before: &[(
            "helm upgrade --install",
            "kubectl delete crd nodereadinessrules.readiness.node.x-k8s.io --ignore-not-found; \
             kubectl delete -k config/birth --ignore-not-found",
        )],
        apart: &[("jq", "not everybody has jq")],
        ..page("docs/your-stack.md", At::Repository)
    },
    // It upgrades the release of the page before.
    Page {
        apart: &[("-k .", "docs/installation.md has the same")],
        ..page("docs/upgrade.md", At::Repository)
    },
];

/// Pages to type where Nodegate runs, in this order.
pub(crate) const INSTALLED: [Page; 31] = [
    Page {
        before: &[("apply -f cilium.yaml", "cp 0.yaml cilium.yaml")],
        apart: &[
            ("make demo", "CI calls it"),
            ("hack/try-cluster", "another test here runs it"),
            ("docker build", "needs a container engine"),
            ("cargo run", "it would run until it is stopped"),
            ("cargo install", "a release build takes minutes"),
        ],
        ..page("README.md", At::Repository)
    },
    Page {
        before: &[
            (
                "status.dryRunResults",
                "sed 's/network-2/network/; s/dryRun: true/dryRun: false/' 0.yaml > network.yaml",
            ),
            ("status.dryRunResults", "kubectl apply -f network.yaml"),
            ("status.dryRunResults", "cp 0.yaml network-2.yaml"),
        ],
        ..page("docs/change-a-rule.md", At::Repository)
    },
    Page {
        apart: &[("nodegate preview", "tests/cli holds it to a cluster")],
        ..page("docs/gitops.md", At::Repository)
    },
    Page {
        names: &[NODE],
        before: &[
            ("apply -f cilium.yaml", "cp 0.yaml cilium.yaml"),
            (
                "label node NODE example.com/first=yes",
                "cp 1.yaml first.yaml",
            ),
        ],
        ..page("docs/first-rule.md", At::Repository)
    },
    Page {
        names: &[RULE, ("KEY", KEY)],
        before: &[
            ("delete nrr RULE", A_RULE),
            ("patch nrr RULE", A_RULE),
            ("taint nodes --all KEY-", A_TAINT),
        ],
        ..page("docs/emergency.md", At::Repository)
    },
    Page {
        before: &[
            ("--from dump/", "kubectl nodegate dump dump"),
            (
                "suggest | kubectl apply",
                "kubectl -n kube-system set image daemonset/cilium main=quay.io/cilium/cilium:v1.18.0",
            ),
        ],
        apart: &[
            ("explain", "tests/cli holds it to a cluster"),
            ("preview", "tests/cli holds it to a cluster"),
        ],
        ..page("docs/kubectl.md", At::Repository)
    },
    Page {
        names: &[("manifests/", "config/samples/")],
        ..page("docs/kubectl/check.md", At::Repository)
    },
    Page {
        before: &[("apply -f istio-cni.yaml", "cp 0.yaml istio-cni.yaml")],
        ..page("docs/moving-in/gardener.md", At::Repository)
    },
    Page {
        names: &[NODE, RULE],
        before: &[("describe nrr RULE", A_RULE)],
        ..page("docs/observing.md", At::Repository)
    },
    Page {
        names: &[NODE],
        apart: &[("nodegate-controller", "it would run until it is stopped")],
        ..page("docs/repair.md", At::Repository)
    },
    page("docs/security.md", At::Repository),
    Page {
        names: &[NODE, RULE, ("KEY", KEY)],
        before: &[
            ("describe nrr RULE", A_RULE),
            ("get nrr RULE", A_RULE),
            ("taint nodes --all KEY-", A_TAINT),
        ],
        apart: &[("logs deploy", "needs a kubelet")],
        ..page("docs/troubleshooting.md", At::Repository)
    },
    page("examples/all-daemon-sets/README.md", At::Beside),
    Page {
        before: &[(
            "job-per-node.sh",
            "kubectl label nodes --all --overwrite example.com/pool=gpu",
        )],
        ..page("examples/check/README.md", At::Beside)
    },
    Page {
        names: &[(
            "IMAGE=REGISTRY",
            "CALICO=~/nodegate/e2e/suite/tests/fixtures/calico.yaml IMAGE=REGISTRY",
        )],
        before: &[(
            "sh apply-calico.sh",
            "kubectl -n kube-system delete daemonset calico-node",
        )],
        ..page("examples/cni-readiness/README.md", At::Repository)
    },
    page("examples/cni/README.md", At::Beside),
    page("examples/csi/README.md", At::Beside),
    page("examples/disruption/README.md", At::Beside),
    page("examples/dra/README.md", At::Beside),
    page("examples/gardener/README.md", At::Beside),
    page("examples/gpu/README.md", At::Beside),
    page("examples/in-order/README.md", At::Beside),
    page("examples/karpenter-repair/README.md", At::Beside),
    page("examples/node-problem-detector/README.md", At::Beside),
    page("examples/room-first/README.md", At::Beside),
    page("examples/security-agent/README.md", At::Beside),
    page("examples/startup-taint-removal/README.md", At::Beside),
    page("examples/startup-taints/README.md", At::Beside),
    page("examples/your-stack/README.md", At::Beside),
    Page {
        before: &[
            (
                "apply --server-side --force-conflicts -k .",
                "cp 0.yaml kustomization.yaml",
            ),
            (
                "-f crds.yaml",
                "cp ~/nodegate/e2e/suite/tests/fixtures/upstream-crd.yaml crds.yaml",
            ),
        ],
        apart: &[
            ("OLD-NAMESPACE", "needs the other project's chart"),
            ("--take-ownership", "needs the other project's chart"),
            (
                "node-readiness-controller/config",
                "needs the other project's source",
            ),
            ("logs deployment", "needs a kubelet"),
            ("run nodegate-image", "needs a kubelet"),
        ],
        ..page(
            "docs/moving-in/node-readiness-controller.md",
            At::Repository,
        )
    },
    // Nothing serves this webhook, so no rule can be created after it.
    page("docs/webhook.md", At::Repository),
];
