//! The watch of one kind stalls for a minute without closing, while something relevant changes. The controller must not act on
//! stale evidence, but still do what is right.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::{Client, ResourceExt};
use nodegate_testbed::changes::{patch_rule, set_node_condition, set_pod_ready};
use nodegate_testbed::fixtures::{daemon_set, node, pod, rule, set_csi_drivers};
use nodegate_testbed::relay::{Kind, RULES, Relay};
use nodegate_testbed::sights::has_taint;
use nodegate_testbed::{Cluster, Controller, Options, eventually_eq, never};
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);
/// The time after which a silent watch's view is stale.
const IN_DOUBT: Duration = Duration::from_secs(25);
/// The rest of the minute.
const FROZEN: Duration = Duration::from_secs(35);
const NETWORK: &str = "example.com/NetworkReady";
const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";
const DRIVER: &str = "ebs.csi.aws.com";
const KEY: &str = "readiness.k8s.io/evidence";

/// A cluster with one node, and a controller behind a relay.
struct Scene {
    client: Client,
    relay: Relay,
    node: Node,
    _controller: Controller,
    _cluster: Cluster,
}

impl Scene {
    async fn set(network: &str) -> Result<Self> {
        let cluster = Cluster::start(Options::api_only()).await?;
        cluster.install().await?;
        let client = cluster.client().await?;
        let node = node("n")
            .condition(NETWORK, network)
            .create(&client)
            .await?;
        let relay = Relay::start(&cluster).await?;
        let controller = Controller::spawn_behind(&relay, &cluster, &[]).await?;
        Ok(Self {
            client,
            relay,
            node,
            _controller: controller.once_ready().await?,
            _cluster: cluster,
        })
    }

    /// Freezes the watch, and waits until its view is stale.
    async fn freeze(&self, kind: Kind) {
        self.relay.freeze(kind);
        tokio::time::sleep(IN_DOUBT).await;
    }

    async fn turn(&self, status: &str) -> Result<()> {
        set_node_condition(&self.client, &self.node.name_any(), NETWORK, status).await
    }

    async fn is_closed(&self) -> Result<bool> {
        has_taint(&self.client, &self.node.name_any(), KEY).await
    }

    async fn eventually_closed(&self, closed: bool) -> Result<()> {
        eventually_eq("the node is closed", SOON, closed, async || {
            self.is_closed().await
        })
        .await
    }

    /// Checks for the rest of the minute that the node never gets this state.
    async fn never_closed(&self, closed: bool) -> Result<()> {
        let what = if closed {
            "it is closed"
        } else {
            "it is opened"
        };
        never(what, FROZEN, async || Ok(self.is_closed().await? == closed)).await
    }

    /// A rule that waits for the network, and for another condition that is already met.
    async fn gate(&self, kind: &str) -> Result<()> {
        let gate = rule("evidence", KEY).bootstrap_only();
        let gate = gate.waits_for(NETWORK).waits_for(kind);
        gate.create(&self.client).await?;
        self.eventually_closed(true).await
    }
}

#[tokio::test]
async fn nothing_wrong_is_done_while_the_watch_of_one_kind_stands_still() -> Result<()> {
    tokio::try_join!(
        a_pod_that_is_not_ready_any_more(),
        a_daemon_set_that_has_come(),
        a_driver_that_is_gone(),
        a_rule_that_is_a_dry_run_now(),
        a_node_that_has_turned(),
    )?;
    Ok(())
}

async fn a_pod_that_is_not_ready_any_more() -> Result<()> {
    let scene = Scene::set("False").await?;
    pod("kube-system/cni")
        .critical()
        .on("n")
        .create(&scene.client)
        .await?;
    set_pod_ready(&scene.client, "kube-system", "cni", true).await?;
    scene.gate(COMPONENTS).await?;
    scene.freeze(Kind::PODS).await;
    set_pod_ready(&scene.client, "kube-system", "cni", false).await?;
    scene.turn("True").await?;
    scene.never_closed(false).await?;
    set_pod_ready(&scene.client, "kube-system", "cni", true).await?;
    scene.relay.thaw_all();
    scene.eventually_closed(false).await
}

async fn a_daemon_set_that_has_come() -> Result<()> {
    let scene = Scene::set("False").await?;
    let late = daemon_set("kube-system/late")
        .critical()
        .tolerate_everything();
    scene.gate(COMPONENTS).await?;
    scene.freeze(Kind::DAEMON_SETS).await;
    late.create(&scene.client).await?;
    scene.turn("True").await?;
    scene.never_closed(false).await?;
    scene.relay.thaw_all();
    never("it is opened", Duration::from_secs(5), async || {
        Ok(!scene.is_closed().await?)
    })
    .await
}

async fn a_driver_that_is_gone() -> Result<()> {
    let scene = Scene::set("False").await?;
    set_csi_drivers(&scene.client, &scene.node, &[DRIVER]).await?;
    scene
        .gate(&format!("csidriver.nodegate.dev/{DRIVER}"))
        .await?;
    scene.freeze(Kind::CSI_NODES).await;
    set_csi_drivers(&scene.client, &scene.node, &[]).await?;
    scene.turn("True").await?;
    scene.never_closed(false).await?;
    set_csi_drivers(&scene.client, &scene.node, &[DRIVER]).await?;
    scene.relay.thaw_all();
    scene.eventually_closed(false).await
}

async fn a_rule_that_is_a_dry_run_now() -> Result<()> {
    let scene = Scene::set("True").await?;
    let follows = rule("evidence", KEY).waits_for(NETWORK);
    follows.create(&scene.client).await?;
    scene.turn("False").await?;
    scene.eventually_closed(true).await?;
    scene.turn("True").await?;
    scene.eventually_closed(false).await?;
    scene.freeze(RULES).await;
    let dry = json!({"spec": {"dryRun": true}});
    patch_rule(&scene.client, "evidence", &dry).await?;
    scene.turn("False").await?;
    scene.never_closed(true).await?;
    let live = json!({"spec": {"dryRun": false}});
    patch_rule(&scene.client, "evidence", &live).await?;
    scene.relay.thaw_all();
    scene.eventually_closed(true).await
}

/// The rule comes while the nodes' watch stalls. One node has changed since, the other has not: a live read tells them apart.
async fn a_node_that_has_turned() -> Result<()> {
    let scene = Scene::set("False").await?;
    let other = node("other").condition(NETWORK, "False");
    other.create(&scene.client).await?;
    // The controller knows the node once this rule has closed it.
    rule("known", "readiness.k8s.io/known")
        .waits_for(NETWORK)
        .create(&scene.client)
        .await?;
    for name in ["n", "other"] {
        eventually_eq("known", SOON, true, async || {
            has_taint(&scene.client, name, "readiness.k8s.io/known").await
        })
        .await?;
    }
    scene.freeze(Kind::NODES).await;
    scene.turn("True").await?;
    let late = rule("evidence", KEY).waits_for(NETWORK);
    late.create(&scene.client).await?;
    eventually_eq("what is right is still done", SOON, true, async || {
        has_taint(&scene.client, "other", KEY).await
    })
    .await?;
    scene.never_closed(true).await?;
    scene.relay.thaw_all();
    scene.turn("False").await?;
    scene.eventually_closed(true).await
}
