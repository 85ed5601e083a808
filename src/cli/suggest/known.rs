//! Known components, and their purposes.

use crate::cli::snapshot::Agent;

pub(super) struct ComponentPurpose {
    pub name: &'static str,
    /// The effect on pods that start without them, as a sentence.
    pub why: &'static str,
    /// A part of a container image's name, and a description.
    known: &'static [(&'static str, &'static str)],
}

/// The sidecar of CSI drivers.
const REGISTRAR: &str = "csi-node-driver-registrar";

/// All purposes, in the order of the suggestions.
pub(super) const PURPOSES: [ComponentPurpose; 5] = [
    ComponentPurpose {
        name: "network",
        why: "Pods that start before the network is there fail to be set up, or cannot reach services and names.",
        known: &[
            ("cilium/cilium", "Cilium"),
            ("calico/node", "Calico"),
            ("amazon-k8s-cni", "the Amazon VPC CNI plugin"),
            ("flannel", "Flannel"),
            ("antrea", "Antrea"),
            ("azure-cns", "the Azure CNI plugin"),
            ("kube-router", "kube-router"),
            ("ovn-kubernetes", "OVN-Kubernetes"),
            ("kube-ovn", "Kube-OVN"),
            ("weave-kube", "Weave Net"),
            ("multus", "Multus"),
            ("istio/install-cni", "the CNI plugin of Istio"),
            (
                "kube-proxy",
                "kube-proxy: services are not reached without it",
            ),
            (
                "k8s-dns-node-cache",
                "NodeLocal DNSCache: names are not found without it",
            ),
        ],
    },
    ComponentPurpose {
        name: "storage",
        why: "Pods with volumes that start before the driver is there hang in ContainerCreating, and their volumes may have \
              been counted wrong.",
        known: &[(REGISTRAR, "a CSI driver")],
    },
    ComponentPurpose {
        name: "devices",
        why: "A node offers its devices only once their plugin runs; until then other pods fill it.",
        known: &[
            ("k8s-device-plugin", "the device plugin of NVIDIA"),
            ("k8s-dra-driver-gpu", "the DRA driver of NVIDIA"),
            (
                "nvidia-gpu-device-plugin",
                "the device plugin of GKE for NVIDIA",
            ),
            ("rocm/k8s-device-plugin", "the device plugin of AMD"),
            ("intel-gpu-plugin", "the GPU plugin of Intel"),
            ("sriov-network-device-plugin", "the SR-IOV device plugin"),
            ("neuron-device-plugin", "the device plugin of AWS Neuron"),
        ],
    },
    ComponentPurpose {
        name: "identity",
        why: "Pods that start earlier get no credentials, or those of the node.",
        known: &[
            ("eks-pod-identity-agent", "the EKS Pod Identity agent"),
            ("spire-agent", "the SPIRE agent"),
            ("gke-metadata-server", "the metadata server of GKE"),
        ],
    },
    ComponentPurpose {
        name: "security",
        why: "Pods that start earlier run unobserved.",
        known: &[("falco", "Falco"), ("tetragon", "Tetragon")],
    },
];

impl ComponentPurpose {
    /// The description of a `DaemonSet` that is known to serve this purpose. `DaemonSet`s for Windows nodes are skipped, because
    /// suggested rules are for Linux nodes.
    pub(super) fn recognise(&self, agent: &Agent) -> Option<String> {
        let daemon_set = &agent.daemon_set;
        let os = daemon_set.node_selector.get("kubernetes.io/os");
        if daemon_set.deleting || os.is_some_and(|os| os != "linux") {
            return None;
        }
        let mut known = self.known.iter();
        let (part, what) =
            known.find(|(part, _)| agent.images().any(|image| image.contains(part)))?;
        if *part != REGISTRAR {
            return Some((*what).into());
        }
        // The driver's image is the first one that is not a sidecar's.
        let is_sidecar = |image: &str| {
            [REGISTRAR, "livenessprobe"]
                .iter()
                .any(|it| image.contains(it))
        };
        let driver = agent.images().find(|image| !is_sidecar(image));
        Some(format!(
            "{what}: {}",
            driver.unwrap_or(&daemon_set.key.name)
        ))
    }
}
