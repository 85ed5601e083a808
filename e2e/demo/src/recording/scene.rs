//! The story of the recording: four nodes wait for their network, whose image cannot be pulled on one.

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use nodegate_testbed::changes::{break_image, set_node_condition, set_pod_ready};
use nodegate_testbed::sights::{has_taint, node, running_pod};
use nodegate_testbed::{Cluster, Controller, ControllerManager, Options, eventually, fixtures};

use super::terminal::Terminal;

const TAINT: &str = "readiness.k8s.io/network";
const STORAGE: &str = "example.com/StorageReady";
const NETWORK: &str = "daemonset.nodegate.dev/kube-system.cilium";
/// The node that stays closed.
const HELD: &str = "worker-3";
const NODES: [&str; 4] = ["worker-1", "worker-2", HELD, "worker-4"];
/// The timeout of every wait.
const SOON: Duration = Duration::from_secs(60);

/// Plays the story; returns the recorded terminal.
pub(super) async fn play() -> Result<Terminal> {
    let options = Options {
        controller_manager: ControllerManager::Complete,
        ..Options::full()
    };
    let cluster = Cluster::start(options).await?;
    let _controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    let client = cluster.client().await?;
    join(&client).await?;

    let mut terminal = Terminal::default();
    terminal.ask(&cluster, &["status"]).await?;
    let held = format!("node/{HELD}");
    terminal.ask(&cluster, &["explain", &held]).await?;
    terminal.remark("the image's name is corrected: the pod comes up");
    let pod = running_pod(&client, HELD, "cilium").await?;
    set_pod_ready(&client, "kube-system", &pod, true).await?;
    until_open(&client, HELD).await?;
    terminal.ask(&cluster, &["status"]).await?;
    Ok(terminal)
}

/// The nodes join; all but one open, one after the other.
async fn join(client: &Client) -> Result<()> {
    let rule = fixtures::rule("network", TAINT).bootstrap_only();
    let rule = rule.waits_for(NETWORK).waits_for(STORAGE);
    rule.create(client).await?;
    for name in NODES {
        let node = fixtures::node(name).allocatable("pods", "100");
        let node = node.allocatable("cpu", "8").taint(TAINT, "NoSchedule");
        node.managed_by_kwok().create(client).await?;
    }
    let network = fixtures::daemon_set("kube-system/cilium").tolerate_everything();
    network.never_ready().create(client).await?;
    for (name, millis) in NODES.iter().zip([2100, 1300, 0, 4300]) {
        let pod = running_pod(client, name, "cilium").await?;
        if *name == HELD {
            break_image(client, "kube-system", &pod, "quay.io/cilium/cilium:v1.81.0").await?;
            set_node_condition(client, name, STORAGE, "True").await?;
            continue;
        }
        set_node_condition(client, name, STORAGE, "True").await?;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        set_pod_ready(client, "kube-system", &pod, true).await?;
        until_open(client, name).await?;
    }
    eventually(
        "the nodes are Ready, and what one lacks is told",
        SOON,
        async || {
            let mut is_so = true;
            for name in NODES {
                is_so &= !has_taint(client, name, "node.kubernetes.io/not-ready").await?;
            }
            let status = node(client, HELD).await?.status;
            let conditions = status.and_then(|it| it.conditions).unwrap_or_default();
            let lacks = |message: &str| message.ends_with("is not Ready");
            let is_told = |it: &k8s_openapi::api::core::v1::NodeCondition| {
                it.type_ == NETWORK && it.message.as_deref().is_some_and(lacks)
            };
            Ok(is_so && conditions.iter().any(is_told))
        },
    )
    .await
}

async fn until_open(client: &Client, node: &str) -> Result<()> {
    eventually("the node is opened", SOON, async || {
        Ok(!has_taint(client, node, TAINT).await?)
    })
    .await
}
