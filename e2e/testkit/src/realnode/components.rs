//! `DaemonSet`s that act on a node like real ones, and a workload. Their containers run the image [`POD`].

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::realnode::images::POD;

/// The role of a network's pods, for [`RealNode::kill`](crate::realnode::RealNode::kill).
pub const NETWORK: &[&str] = &["cni"];

/// The role of Node Problem Detector's pods.
pub const DETECTOR: &[&str] = &["detect"];

/// The folder of the log that such pods read, and the log's name in it.
const KERNEL: (&str, &str) = ("/run/kernel-log", "kmsg");

/// Holds the files that make agents ready.
const AGENTS: &str = "/run/agents";

/// Makes the pods install a network's plugins and configuration on the node, as CNI projects' do. They are Ready once that is
/// done.
pub fn network(daemon_set: DaemonSet) -> Result<DaemonSet> {
    let configuration = json!({
        "cniVersion": "1.0.0",
        "name": "realnode",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "hairpinMode": true,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]},
        }],
    });
    let container = json!({
        "command": ["/pod", "cni", "/opt/cni/bin", "/etc/cni/net.d/10-realnode.conflist"],
        "env": [{"name": "CNI_CONF", "value": configuration.to_string()}],
        "readinessProbe": {"exec": {"command": ["/pod", "check", "/tmp/installed"]}, "periodSeconds": 1},
    });
    let pod = json!({"hostNetwork": true});
    run(
        daemon_set,
        pod,
        container,
        &["/opt/cni/bin", "/etc/cni/net.d"],
    )
}

/// Makes the pods a CSI driver, which registers with the kubelet through its plugin watcher.
pub fn driver(daemon_set: DaemonSet, name: &str) -> Result<DaemonSet> {
    let folder = format!("/var/lib/kubelet/plugins/{name}");
    let container = json!({
        "command": ["/pod", "csi", name, "$(NODE)", format!("{folder}/csi.sock")],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    });
    let folders = [&folder, "/var/lib/kubelet/plugins_registry"];
    run(daemon_set, json!({}), container, &folders)
}

/// Makes the pods a device plugin, which offers the kubelet this many dummy devices of a resource.
pub fn devices(daemon_set: DaemonSet, resource: &str, count: u32) -> Result<DaemonSet> {
    let container = json!({"command": ["/pod", "devices", resource, count.to_string()]});
    let folders = ["/var/lib/kubelet/device-plugins"];
    run(daemon_set, json!({}), container, &folders)
}

/// Makes the pods write a node condition when their simulated kernel log reports a problem, like Node Problem Detector's.
pub fn detector(daemon_set: DaemonSet) -> Result<DaemonSet> {
    let (folder, log) = KERNEL;
    let container = json!({"command": ["/pod", "detect", format!("{folder}/{log}")]});
    run(daemon_set, json!({}), container, &[folder])
}

/// Writes a line to the kernel log that [`detector`] reads.
pub fn log_of_kernel(line: &str) -> Result<()> {
    let (folder, log) = KERNEL;
    let file = Path::new(folder).join(log);
    fs::write(&file, format!("{line}\n")).with_context(|| format!("writing {}", file.display()))
}

/// Makes the pods answer over HTTP, gRPC and sockets. They are Ready as [`set_ready`] decides, and on the pod network.
pub fn agent(daemon_set: DaemonSet) -> Result<DaemonSet> {
    let folder = agent_folder(&daemon_set.name_any());
    let folder = folder.to_string_lossy();
    let container = json!({
        "command": ["/pod", "serve", format!("{folder}/ready")],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    });
    run(daemon_set, json!({}), container, &[&folder])
}

pub fn set_ready(agent: &str, ready: bool) -> Result<()> {
    let folder = agent_folder(agent);
    let file = folder.join("ready");
    let change = || {
        if ready {
            fs::create_dir_all(&folder)?;
            return fs::write(&file, "");
        }
        if file.exists() {
            return fs::remove_file(&file);
        }
        Ok(())
    };
    change().with_context(|| format!("changing {}", file.display()))
}

/// An agent's folder, on the node and in its containers: `ready` exists while it is ready, and it answers over HTTP at
/// `http.sock`.
pub fn agent_folder(name: &str) -> PathBuf {
    Path::new(AGENTS).join(name)
}

/// Adds a container to the pods of a `DaemonSet`, with these folders of the node.
fn run(daemon_set: DaemonSet, pod: Value, container: Value, folders: &[&str]) -> Result<DaemonSet> {
    let mut daemon_set = serde_json::to_value(daemon_set).context("writing a DaemonSet")?;
    let spec = &mut daemon_set["spec"]["template"]["spec"];
    merge(spec, pod);
    merge(&mut spec["containers"][0], container);
    spec["containers"][0]["image"] = json!(POD);
    spec["containers"][0]["imagePullPolicy"] = json!("Never");
    spec["terminationGracePeriodSeconds"] = json!(1);
    for (number, folder) in folders.iter().enumerate() {
        let name = format!("folder-{number}");
        push(
            &mut spec["volumes"],
            json!({"name": name, "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}),
        );
        push(
            &mut spec["containers"][0]["volumeMounts"],
            json!({"name": name, "mountPath": folder}),
        );
    }
    serde_json::from_value(daemon_set).context("reading a DaemonSet")
}

fn merge(into: &mut Value, fields: Value) {
    if let Value::Object(fields) = fields {
        for (name, value) in fields {
            into[name] = value;
        }
    }
}

fn push(list: &mut Value, element: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(element);
    } else {
        *list = json!([element]);
    }
}

pub async fn create(client: &Client, daemon_set: &DaemonSet) -> Result<()> {
    let namespace = daemon_set.namespace().unwrap_or_default();
    Api::namespaced(client.clone(), &namespace)
        .create(&PostParams::default(), daemon_set)
        .await
        .with_context(|| format!("creating DaemonSet {}", daemon_set.name_any()))?;
    Ok(())
}

/// Creates a workload of this many pods without tolerations, in `default`.
pub async fn create_workload(client: &Client, name: &str, replicas: u32) -> Result<()> {
    let labels = json!({"app": name});
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main",
                        "image": POD,
                        "imagePullPolicy": "Never",
                        "command": ["/pod", "pause"],
                    }],
                },
            },
        },
    }))?;
    Api::default_namespaced(client.clone())
        .create(&PostParams::default(), &deployment)
        .await
        .with_context(|| format!("creating Deployment {name}"))?;
    Ok(())
}
