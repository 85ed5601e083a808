//! One kind is held back while something relevant changes, so the evidence is stale when the controller would act on it. For
//! one node of a pair it is wrong by then, and for the other still right.

use std::time::Duration;

use anyhow::{Result, ensure};
use nodegate_tests::gates::{eventually_gated, eventually_released, eventually_reported};
use nodegate_tests::rules::key;
use serde_json::json;
use testkit::nodegate::changes::{patch_rule, set_pod_ready};
use testkit::nodegate::relay::{Kind, RULES};
use testkit::nodegate::state::reasons_about;

use super::scene::Kept::{Held, Released};
use super::scene::{COMPONENTS, NETWORK, Scene, critical_pod, gate, networked, rule_of};

/// The interval of a reporter's heartbeats.
const BEAT: Duration = Duration::from_secs(5);

/// One Ready pod fails, one recovers within the grace period, and one becomes Ready before the node's deadline.
pub(crate) async fn pods() -> Result<()> {
    let scene = Scene::set().await?;
    let client = &scene.client;
    let set = async |pod: &str, ready| set_pod_ready(client, "kube-system", pod, ready).await;
    for name in ["fails", "stays", "recovers", "comes"] {
        networked(name, "False").create(client).await?;
        critical_pod(name).create(client).await?;
        set(name, name != "comes").await?;
    }
    let _controller = scene.start(&[]).await?;
    for name in ["fails", "stays"] {
        gate(name, COMPONENTS).create(client).await?;
        eventually_gated(client, name, &key(name)).await?;
    }
    let patient = rule_of("recovers").nodegate("gracePeriod", json!("40s"));
    patient.waits_for(COMPONENTS).create(client).await?;
    let is_published =
        async |status: &str| eventually_reported(client, "recovers", COMPONENTS, status).await;
    is_published("True").await?;
    let release = json!({"readinessTTL": "1m", "action": "Release", "maxUnhealthy": "100%"});
    let release = rule_of("comes")
        .bootstrap_only()
        .nodegate("repair", release);
    release.waits_for(COMPONENTS).create(client).await?;
    eventually_gated(client, "comes", &key("comes")).await?;
    set("recovers", false).await?;
    is_published("False").await?;

    let hold = scene.hold(Kind::PODS).await?;
    set("fails", false).await?;
    set("recovers", true).await?;
    set("comes", true).await?;
    hold.gets_old().await;
    scene.turn("fails", "True").await?;
    scene.turn("stays", "True").await?;
    scene.released_by_a_list("stays").await?;
    hold.kept(&scene, &[("fails", Held), ("recovers", Released)])
        .await?;

    scene.server.thaw_all();
    eventually_released(client, "comes", &key("comes")).await?;
    let told = reasons_about(client, "Node", "comes").await?;
    let given_up = told.contains(&"NodeReleasedUnready".to_owned());
    ensure!(!given_up, "it was given up");
    is_published("True").await?;
    set("fails", true).await?;
    eventually_released(client, "fails", &key("fails")).await
}

/// One node's network comes up, another's fails; a third node has a reporter with heartbeats.
pub(crate) async fn nodes() -> Result<()> {
    let scene = Scene::set().await?;
    let client = &scene.client;
    let set = async |pod: &str, ready| set_pod_ready(client, "kube-system", pod, ready).await;
    for (name, network) in [
        ("recovers", "False"),
        ("unready", "False"),
        ("fails", "True"),
        ("stays", "True"),
        ("beats", "True"),
    ] {
        networked(name, network).create(client).await?;
        critical_pod(name).create(client).await?;
    }
    let _controller = scene.start(&[]).await?;
    for name in ["fails", "stays"] {
        gate(name, COMPONENTS).create(client).await?;
        eventually_gated(client, name, &key(name)).await?;
    }
    let listens = rule_of("beats").nodegate("heartbeatTimeout", json!("1m"));
    listens.waits_for(NETWORK).create(client).await?;

    let hold = scene.hold(Kind::NODES).await?;
    scene.turn("recovers", "True").await?;
    scene.turn("fails", "False").await?;
    let acting = async {
        hold.gets_old().await;
        for name in ["recovers", "unready"] {
            rule_of(name).waits_for(NETWORK).create(client).await?;
        }
        set("fails", true).await?;
        set("stays", true).await?;
        tokio::try_join!(
            scene.gated_by_a_list("unready"),
            scene.released_by_a_list("stays")
        )?;
        let kept = [("recovers", Released), ("fails", Held), ("beats", Released)];
        hold.kept(&scene, &kept).await
    };
    tokio::select! {
        failed = beat(&scene) => failed?,
        acted = acting => acted?,
    }

    scene.server.thaw_all();
    scene.turn("fails", "True").await?;
    eventually_released(client, "fails", &key("fails")).await?;
    scene.turn("recovers", "False").await?;
    eventually_gated(client, "recovers", &key("recovers")).await
}

/// Sends heartbeats until one fails.
async fn beat(scene: &Scene) -> Result<()> {
    loop {
        scene.turn("beats", "True").await?;
        tokio::time::sleep(BEAT).await;
    }
}

/// One rule becomes a dry run, and another one is suspended.
pub(crate) async fn rules() -> Result<()> {
    let scene = Scene::set().await?;
    let client = &scene.client;
    for (name, network) in [
        ("spared", "True"),
        ("gates", "True"),
        ("waits", "False"),
        ("stays", "False"),
    ] {
        networked(name, network).create(client).await?;
        let rule = rule_of(name).waits_for(NETWORK);
        let once = network == "False";
        let rule = if once { rule.bootstrap_only() } else { rule };
        rule.create(client).await?;
    }
    let _controller = scene.start(&[]).await?;
    for name in ["waits", "stays"] {
        eventually_gated(client, name, &key(name)).await?;
    }

    let hold = scene.hold(RULES).await?;
    patch_rule(client, "spared", &json!({"spec": {"dryRun": true}})).await?;
    patch_rule(
        client,
        "waits",
        &json!({"spec": {"nodegate": { "suspend": true }}}),
    )
    .await?;
    hold.gets_old().await;
    for (name, network) in [
        ("spared", "False"),
        ("gates", "False"),
        ("waits", "True"),
        ("stays", "True"),
    ] {
        scene.turn(name, network).await?;
    }
    scene.released_by_a_list("stays").await?;
    scene.gated_by_a_list("gates").await?;
    hold.kept(&scene, &[("spared", Released), ("waits", Held)])
        .await?;

    scene.server.thaw_all();
    patch_rule(client, "spared", &json!({"spec": {"dryRun": false}})).await?;
    eventually_gated(client, "spared", &key("spared")).await?;
    patch_rule(
        client,
        "waits",
        &json!({"spec": {"nodegate": { "suspend": false }}}),
    )
    .await?;
    eventually_released(client, "waits", &key("waits")).await
}
