//! Known components, and their purposes.

use crate::cli::snapshot::Agent;
use ComponentPurpose::{Devices, Identity, Network, Security, Storage};

/// Why nodes need a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComponentPurpose {
    /// Pods can reach each other, services and names.
    Network,
    Storage,
    Devices,
    /// Pods get credentials from the node.
    Identity,
    Security,
}

impl ComponentPurpose {
    /// All purposes, in the order of the suggestions.
    pub(crate) const ALL: [Self; 5] = [
        Self::Network,
        Self::Storage,
        Self::Devices,
        Self::Identity,
        Self::Security,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Storage => "storage",
            Self::Devices => "devices",
            Self::Identity => "identity",
            Self::Security => "security",
        }
    }

    /// The effect on pods that start without it, as a sentence.
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Network => {
                "Pods that start before the network is there fail to be set up, or cannot reach services and names."
            }
            Self::Storage => {
                "Pods with volumes that start before the driver is there hang in ContainerCreating, and their volumes may \
                 have been counted wrong."
            }
            Self::Devices => {
                "A node offers its devices only once their plugin runs; until then other pods fill it."
            }
            Self::Identity => "Pods that start earlier get no credentials, or those of the node.",
            Self::Security => "Pods that start earlier run unobserved.",
        }
    }
}

/// Known components: a part of a container image's name, the purpose, and a description.
const KNOWN: [(&str, ComponentPurpose, &str); 27] = [
    ("cilium/cilium", Network, "Cilium"),
    ("calico/node", Network, "Calico"),
    ("amazon-k8s-cni", Network, "the Amazon VPC CNI plugin"),
    ("flannel", Network, "Flannel"),
    ("antrea", Network, "Antrea"),
    ("azure-cns", Network, "the Azure CNI plugin"),
    ("kube-router", Network, "kube-router"),
    ("ovn-kubernetes", Network, "OVN-Kubernetes"),
    ("kube-ovn", Network, "Kube-OVN"),
    ("weave-kube", Network, "Weave Net"),
    ("multus", Network, "Multus"),
    ("istio/install-cni", Network, "the CNI plugin of Istio"),
    (
        "kube-proxy",
        Network,
        "kube-proxy: services are not reached without it",
    ),
    (
        "k8s-dns-node-cache",
        Network,
        "NodeLocal DNSCache: names are not found without it",
    ),
    ("csi-node-driver-registrar", Storage, "a CSI driver"),
    ("k8s-device-plugin", Devices, "the device plugin of NVIDIA"),
    ("k8s-dra-driver-gpu", Devices, "the DRA driver of NVIDIA"),
    (
        "nvidia-gpu-device-plugin",
        Devices,
        "the device plugin of GKE for NVIDIA",
    ),
    (
        "rocm/k8s-device-plugin",
        Devices,
        "the device plugin of AMD",
    ),
    ("intel-gpu-plugin", Devices, "the GPU plugin of Intel"),
    (
        "sriov-network-device-plugin",
        Devices,
        "the SR-IOV device plugin",
    ),
    (
        "neuron-device-plugin",
        Devices,
        "the device plugin of AWS Neuron",
    ),
    (
        "eks-pod-identity-agent",
        Identity,
        "the EKS Pod Identity agent",
    ),
    ("spire-agent", Identity, "the SPIRE agent"),
    (
        "gke-metadata-server",
        Identity,
        "the metadata server of GKE",
    ),
    ("falco", Security, "Falco"),
    ("tetragon", Security, "Tetragon"),
];

/// The description of a `DaemonSet` that is known to serve this purpose. `DaemonSet`s for Windows nodes are skipped, because
/// suggested rules are for Linux nodes.
pub(super) fn recognise(agent: &Agent, purpose: ComponentPurpose) -> Option<String> {
    let daemon_set = &agent.daemon_set;
    let os = daemon_set.node_selector.get("kubernetes.io/os");
    if daemon_set.deleting || os.is_some_and(|os| os != "linux") {
        return None;
    }
    let of_purpose = KNOWN.iter().filter(|known| known.1 == purpose);
    let mut recognised =
        of_purpose.filter(|(part, ..)| agent.images().any(|image| image.contains(part)));
    let (_, _, what) = recognised.next()?;
    Some(match purpose {
        ComponentPurpose::Storage => format!("{what}: {}", driver(agent)),
        _ => (*what).into(),
    })
}

/// The image of a CSI driver: the first container that is not a sidecar.
fn driver(agent: &Agent) -> &str {
    let is_sidecar = |image: &str| {
        ["csi-node-driver-registrar", "livenessprobe"]
            .iter()
            .any(|it| image.contains(it))
    };
    let own = agent.images().find(|image| !is_sidecar(image));
    own.unwrap_or(&agent.daemon_set.key.name)
}
