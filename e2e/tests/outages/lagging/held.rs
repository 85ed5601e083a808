//! One kind is held back while something relevant changes, so the evidence is stale when the controller would act on it. For
//! one node of a pair it is wrong by then, and for the other still right.

use anyhow::Result;
use nodegate_tests::gates::{eventually_gated, eventually_released};
use nodegate_tests::rules::key;
use serde_json::json;
use testkit::nodegate::changes::{patch_rule, set_pod_ready};
use testkit::nodegate::relay::{Kind, RULES};

use super::scene::Kept::{Held, Released};
use super::scene::{COMPONENTS, NETWORK, Scene, critical_pod, gate, networked, rule_of};

/// One node's network comes up, and another's fails.
pub(crate) async fn nodes() -> Result<()> {
    let scene = Scene::set().await?;
    let client = &scene.client;
    let set = async |pod: &str, ready| set_pod_ready(client, "kube-system", pod, ready).await;
    for (name, network) in [
        ("recovers", "False"),
        ("unready", "False"),
        ("fails", "True"),
        ("stays", "True"),
    ] {
        networked(name, network).create(client).await?;
        critical_pod(name).create(client).await?;
    }
    let _controller = scene.start(&[]).await?;
    for name in ["fails", "stays"] {
        gate(name, COMPONENTS).create(client).await?;
        eventually_gated(client, name, &key(name)).await?;
    }

    let hold = scene.hold(Kind::NODES).await?;
    scene.turn("recovers", "True").await?;
    scene.turn("fails", "False").await?;
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
    hold.kept(&scene, &[("recovers", Released), ("fails", Held)])
        .await?;

    scene.server.thaw_all();
    scene.turn("fails", "True").await?;
    eventually_released(client, "fails", &key("fails")).await?;
    scene.turn("recovers", "False").await?;
    eventually_gated(client, "recovers", &key("recovers")).await
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
