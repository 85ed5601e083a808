//! Nodegate as it is shipped: `config/default`, with the webhook, as pods on the very node that it has to open.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};
use kube_realnode::components::create_workload;
use kube_realnode::images::Image;
use kube_realnode::inside::{alone, has_users};
use kube_realnode::node::{NAME, options};
use kube_realnode::{RealNode, Times};
use nodegate_testbed::controller::binary;
use nodegate_testbed::fixtures::rule;
use nodegate_testbed::install::{NAMESPACE, kustomize, write_kustomization};
use nodegate_testbed::sights::{has_taint, is_ready, pods_on};
use nodegate_testbed::{Cluster, eventually};

use crate::scene::{TAINT, closed, create_critical, critical_rule};

/// The image of `config/manager`, as containerd calls it.
const IMAGE: &str = "docker.io/library/nodegate:0.1.0";

/// `config/default` with the webhook. Without other users than root, its pods run as root, which its namespace has to allow.
async fn manifests(folder: &Path) -> Result<String> {
    write_kustomization(folder, &["default"], &["components/webhook"])?;
    let shipped = kustomize(folder).await?;
    if has_users() {
        return Ok(shipped);
    }
    Ok(shipped
        .replace("runAsNonRoot: true", "runAsNonRoot: false")
        .replace("runAsUser: 65532", "runAsUser: 0")
        .replace("runAsGroup: 65532", "runAsGroup: 0")
        .replace("enforce: restricted", "enforce: privileged"))
}

/// The pod that leads.
async fn leader(client: &Client) -> Result<Option<String>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let leases = leases.list(&ListParams::default()).await?;
    let mut specs = leases.items.into_iter().filter_map(|lease| lease.spec);
    let held = specs.find_map(|spec| spec.holder_identity);
    Ok(held.filter(|held| !held.is_empty()))
}

/// How many pods of Nodegate's are Ready.
async fn ready(client: &Client) -> Result<usize> {
    let pods = pods_on(client, NAME).await?;
    let own = |namespace: &Option<String>| namespace.as_deref() == Some(NAMESPACE);
    let own = pods.iter().filter(|pod| own(&pod.metadata.namespace));
    Ok(own.filter(|pod| is_ready(pod)).count())
}

#[test]
fn the_pods_of_the_installation_open_the_node_that_they_run_on() -> Result<()> {
    alone(async || {
        let cluster = Cluster::start(options()).await?;
        let client = cluster.client().await?;
        cluster.install_crd().await?;
        // From the installation on a rule can only be created while the webhook answers.
        critical_rule().create(&client).await?;
        let folder = cluster.folder().join("installation");
        cluster.apply(&manifests(&folder).await?).await?;
        create_critical(&client).await?;
        create_workload(&client, "shop", 1).await?;

        let image = Image::of(IMAGE, "/nodegate", &binary()?)?;
        let node = RealNode::start(&cluster, closed().image(image)).await?;
        let times = Times::since("the kubelet is started");
        times
            .until("it has registered, closed", async || {
                has_taint(&client, NAME, TAINT).await
            })
            .await?;
        times
            .until("a pod of the controller leads", async || {
                Ok(leader(&client).await?.is_some())
            })
            .await?;
        times
            .until("the node is open", async || {
                Ok(!has_taint(&client, NAME, TAINT).await?)
            })
            .await?;
        times
            .until("both pods are Ready", async || {
                Ok(ready(&client).await? == 2)
            })
            .await?;

        let conflicting = rule("another", TAINT).waits_for("example.com/Ready");
        times
            .until("the webhook answers through its Service", async || {
                let answer = conflicting.clone().try_out(&client).await;
                Ok(answer.is_err_and(|error| {
                    format!("{error:#}").contains("conflicts with existing rule 'critical'")
                }))
            })
            .await?;

        let first = leader(&client).await?.context("nobody leads")?;
        let pod = pod_of(&first);
        let times = Times::since("the leader's process is killed");
        node.kill_by_variable("POD_NAME", pod)?;
        times
            .until("another one leads", async || {
                Ok(leader(&client).await?.is_some_and(|now| now != first))
            })
            .await?;
        eventually("both are Ready again", nodegate_suite::SOON, async || {
            Ok(ready(&client).await? == 2)
        })
        .await?;
        ensure!(!has_taint(&client, NAME, TAINT).await?);
        Ok(())
    })
}

/// The pod's name, of what the Lease calls its holder.
fn pod_of(holder: &str) -> &str {
    holder.split_once('_').map_or(holder, |(pod, _)| pod)
}
