//! An instance starts to lead while a kind is held back: its earlier view becomes stale unnoticed.

use anyhow::Result;
use nodegate_tests::PROMPTLY;
use nodegate_tests::gates::{eventually_gated, eventually_released};
use nodegate_tests::rules::key;
use testkit::nodegate::Controller;
use testkit::nodegate::changes::set_pod_ready;
use testkit::nodegate::relay::Kind;

use super::scene::Kept::Held;
use super::scene::{COMPONENTS, Scene, critical_pod, gate, networked};

const ELECT: [&str; 1] = ["--leader-elect"];

/// The previous leader's API server does not lag.
pub(crate) async fn a_standby_that_begins_to_lead() -> Result<()> {
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
    standby.says("leading", PROMPTLY).await?;
    scene.released_by_a_list("stays").await?;
    hold.kept(&scene, &[("fails", Held)]).await?;

    scene.server.thaw_all();
    set("fails", true).await?;
    eventually_released(client, "fails", &key("fails")).await
}
