//! An instance starts to act while a kind is held back: its earlier view, or its first list, becomes stale unnoticed.

use anyhow::{Context, Result};
use nodegate_suite::PROMPTLY;
use nodegate_suite::gates::{eventually_gated, eventually_open};
use nodegate_testbed::changes::set_pod_ready;
use nodegate_testbed::relay::Kind;
use nodegate_testbed::{Controller, eventually};

use super::scene::Kept::{Closed, Open};
use super::scene::{COMPONENTS, NETWORK, Scene, critical_pod, gate, key, networked, rule_of};

const ELECT: [&str; 1] = ["--leader-elect"];

pub(crate) async fn a_standby_that_begins_to_lead() -> Result<()> {
    leading()
        .await
        .context("a standby begins to lead while pods are held back")
}

/// The previous leader's API server does not lag.
async fn leading() -> Result<()> {
    let scene = Scene::set().await?;
    let client = &scene.client;
    let set = async |pod: &str, ready| set_pod_ready(client, "kube-system", pod, ready).await;
    let leader = Controller::start(&scene.cluster, &ELECT).await?;
    for name in ["fails", "stays"] {
        networked(name, "False").create(client).await?;
        critical_pod(name).create(client).await?;
        set(name, true).await?;
        gate(name, COMPONENTS).create(client).await?;
        eventually_gated(client, name, &key(name)).await?;
    }
    let standby = scene.start(&ELECT).await?;

    let hold = scene.hold(Kind::PODS).await?;
    set("fails", false).await?;
    hold.gets_old().await;
    leader.stop().await?;
    scene.turn("fails", "True").await?;
    scene.turn("stays", "True").await?;
    eventually("it leads", PROMPTLY, async || {
        Ok(standby.log().contains("leading"))
    })
    .await?;
    scene.opened_by_a_look("stays").await?;
    hold.kept(&scene, &[("fails", Closed)]).await?;

    scene.server.thaw_all();
    set("fails", true).await?;
    eventually_open(client, "fails", &key("fails")).await
}

pub(crate) async fn a_controller_that_starts() -> Result<()> {
    starting()
        .await
        .context("a controller starts while Nodes are held back")
}

/// Its list is current, but its watches show nothing afterwards.
async fn starting() -> Result<()> {
    let scene = Scene::set().await?;
    let client = &scene.client;
    for name in ["recovers", "unready"] {
        networked(name, "True").create(client).await?;
    }
    let first = scene.start(&[]).await?;
    scene.server.freeze(Kind::NODES);
    scene.turn("recovers", "False").await?;
    scene.turn("unready", "False").await?;
    first.kill();
    let _second = scene.start(&[]).await?;

    let hold = scene.hold(Kind::NODES).await?;
    scene.turn("recovers", "True").await?;
    hold.gets_old().await;
    for name in ["recovers", "unready"] {
        rule_of(name).waits_for(NETWORK).create(client).await?;
    }
    scene.closed_by_a_look("unready").await?;
    hold.kept(&scene, &[("recovers", Open)]).await?;

    scene.server.thaw_all();
    scene.turn("recovers", "False").await?;
    eventually_gated(client, "recovers", &key("recovers")).await?;
    scene.turn("unready", "True").await?;
    eventually_open(client, "unready", &key("unready")).await
}
