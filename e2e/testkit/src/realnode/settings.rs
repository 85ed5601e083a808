//! The configuration of kubelet and containerd.

use std::time::Duration;

use serde_json::{Value, json};

use crate::realnode::images::POD;
use crate::realnode::node::Setup;

pub(crate) const SOCKET: &str = "/run/containerd/containerd.sock";

pub(crate) const STATIC_PODS: &str = "/run/node/static";

/// The longest back-off before a container restarts; the default grows to minutes.
const RESTART: Duration = Duration::from_secs(6);

/// The kubelet's configuration. JSON is YAML.
pub(crate) fn kubelet(setup: &Setup) -> Value {
    let taints: Vec<Value> = setup
        .taints
        .iter()
        .map(|(key, effect)| json!({"key": key, "effect": effect}))
        .collect();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "registerWithTaints": taints,
        "staticPodPath": STATIC_PODS,
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        // `kubectl logs` and `kubectl exec` connect without a certificate.
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        // Cgroups are not writable in a user namespace.
        "featureGates": {"KubeletInUserNamespace": true},
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        // The machine's disk is not the node's.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        // More frequent than the defaults, to save time.
        "nodeStatusUpdateFrequency": "1s",
        "nodeLeaseDurationSeconds": 4,
        "fileCheckFrequency": "1s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": format!("{}s", RESTART.as_secs())},
    })
}

pub(crate) fn containerd(runc: &str) -> String {
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{POD}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  disable_cgroup = true
  disable_hugetlb_controller = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "{runc}"
"#
    )
}
