//! Watches that die silently, requests that are never answered, and expired versions, behind a lossy relay: the controller
//! notices and recovers in time.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;
use nodegate_tests::SOON;
use nodegate_tests::network::{CONDITION, TAINT, create_node, network_rule};
use nodegate_tests::rules::{create_rule, key};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::relay::{Asked, Fate, Kind, RULES, Relay};
use testkit::nodegate::state::has_taint;
use testkit::nodegate::{Cluster, Controller, Options, eventually, eventually_eq};

/// The longest time that a silent watch may go unnoticed, plus the time to recover.
const NOTICED: Duration = Duration::from_secs(30);
/// Every kind that is watched where a rule waits for the default class.
const KINDS: [Kind; 5] = [
    Kind::NODES,
    Kind::CSI_NODES,
    Kind::PODS,
    Kind::DAEMON_SETS,
    RULES,
];

struct Scene {
    cluster: Cluster,
    client: Client,
    relay: Relay,
}

impl Scene {
    /// A node that is not ready, a rule that gates it, another one that waits for a class, and a relay.
    async fn set() -> Result<Self> {
        let cluster = Cluster::start(Options::api_only()).await?;
        let client = cluster.client().await?;
        cluster.install().await?;
        create_node(&client, "node", "False").await?;
        network_rule("network").create(&client).await?;
        let components = "node.gardener.cloud/CriticalComponentsReady";
        create_rule(&client, "components", &key("components"), components).await?;
        let relay = Relay::start(&cluster).await?;
        cluster.idles();
        Ok(Self {
            cluster,
            client,
            relay,
        })
    }

    /// A controller behind the relay, which has gated the node.
    async fn start(&self) -> Result<Controller> {
        let controller = Controller::spawn_behind(&self.relay, &self.cluster, &[]).await?;
        let controller = controller.once_ready().await?;
        self.follows("False", SOON).await?;
        Ok(controller)
    }

    async fn turn(&self, status: &str) -> Result<()> {
        set_node_condition(&self.client, "node", CONDITION, status).await
    }

    /// Waits until the taint matches the condition.
    async fn follows(&self, status: &str, within: Duration) -> Result<()> {
        eventually_eq("the taint", within, status == "False", async || {
            has_taint(&self.client, "node", TAINT).await
        })
        .await
    }
}

#[tokio::test]
async fn a_watch_that_dies_silently_is_resumed_or_listed_anew_and_so_is_one_that_stays_frozen()
-> Result<()> {
    let scene = Scene::set().await?;
    let controller = scene.start().await?;
    let lists = || scene.relay.count(Asked::List(Kind::NODES));
    scene.relay.lose_watches(Kind::NODES);
    scene.turn("True").await?;
    scene.follows("True", NOTICED).await?;
    let before = lists();

    // A version that is refused as too old.
    let watch = Asked::Watch(Kind::NODES);
    scene.relay.doom_next(watch, Fate::Refused(410));
    scene.relay.lose_watches(Kind::NODES);
    scene.turn("False").await?;
    scene.follows("False", NOTICED).await?;
    ensure!(lists() > before, "{before} lists before");
    ensure!(controller.is_ready().await);

    // A list shows what a frozen watch does not.
    scene.relay.freeze(Kind::NODES);
    scene.turn("True").await?;
    scene.follows("True", 2 * NOTICED).await?;
    let given_up = "did not answer within 10 s";
    controller.says(given_up, 2 * NOTICED).await?;
    scene.relay.thaw_all();
    scene.turn("False").await?;
    scene.follows("False", NOTICED).await?;
    controller.says("watch works again", SOON).await
}

#[tokio::test]
async fn a_request_that_is_never_answered_is_made_again() -> Result<()> {
    let scene = Scene::set().await?;
    let lists = [Kind::NODES, Kind::PODS].map(Asked::List);
    for asked in lists {
        scene.relay.doom_next(asked, Fate::Swallowed);
    }
    let watches = [Kind::CSI_NODES, RULES].map(Asked::Watch);
    for asked in watches {
        scene.relay.doom_next(asked, Fate::Swallowed);
    }
    let controller = Controller::spawn_behind(&scene.relay, &scene.cluster, &[]).await?;
    controller.until_ready(2 * NOTICED).await?;
    scene.follows("False", SOON).await?;
    for asked in lists.into_iter().chain(watches) {
        eventually("it is asked again", 2 * NOTICED, async || {
            Ok(scene.relay.count(asked) >= 2)
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_idle_cluster_costs_four_watches_and_four_reads_a_minute_for_each_kind() -> Result<()> {
    let scene = Scene::set().await?;
    let controller = scene.start().await?;
    // The first confirmation is done.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let counts = || {
        let sorts = KINDS.map(|kind| [Asked::Watch(kind), Asked::Version(kind)]);
        sorts.map(|sorts| sorts.map(|asked| scene.relay.count(asked)))
    };
    let before = counts();
    tokio::time::sleep(Duration::from_secs(60)).await;
    for ((kind, before), after) in KINDS.into_iter().zip(before).zip(counts()) {
        for (before, after) in before.into_iter().zip(after) {
            let requests = after - before;
            ensure!(
                (3..=5).contains(&requests),
                "{kind:?}: {requests} a minute: {:?}",
                counts()
            );
        }
        assert_eq!(scene.relay.count(Asked::List(kind)), 1, "{kind:?}");
    }
    let log = controller.log();
    ensure!(!log.contains("trying again"), "{log}");
    Ok(())
}
