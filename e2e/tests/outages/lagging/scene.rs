//! A cluster with a controller at a lagging API server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Client;
use nodegate_tests::gates::{gated_within, released_within};
use nodegate_tests::rules::key;
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::{NodeBuilder, PodBuilder, RuleBuilder, node, pod, rule};
use testkit::nodegate::relay::Kind;
use testkit::nodegate::state::count_taints;
use testkit::nodegate::{Cluster, Controller, LaggingServer, NodeHistory, Options};
use tokio::time::{Instant, sleep_until};

pub(crate) const NETWORK: &str = "example.com/NetworkReady";
pub(crate) const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";

/// How long a kind is held back.
const HELD: Duration = Duration::from_secs(75);
/// Longer than evidence stays fresh enough to act on.
const OLD: Duration = Duration::from_secs(25);

/// How long it takes until the kind that is held back is listed again.
const LISTED: Duration = Duration::from_secs(45);

/// [`Scene::client`] uses an API server that is up to date; the controller's own may lag.
pub(crate) struct Scene {
    pub cluster: Cluster,
    pub client: Client,
    pub server: LaggingServer,
}

/// The period in which a kind is held back.
pub(crate) struct Hold {
    began: Instant,
    history: NodeHistory,
}

impl Scene {
    pub(crate) async fn set() -> Result<Self> {
        // Many API servers that start at once would exceed their timeout.
        let cluster = Cluster::start(Options::api_only()).await?;
        cluster.install().await?;
        let client = cluster.client().await?;
        let server = LaggingServer::start(&cluster).await?;
        cluster.idles();
        Ok(Self {
            cluster,
            client,
            server,
        })
    }

    pub(crate) async fn start(&self, arguments: &[&str]) -> Result<Controller> {
        let controller = Controller::spawn_on(&self.server, &self.cluster, arguments).await?;
        controller.once_ready().await
    }

    /// Starts to hold a kind back.
    pub(crate) async fn hold(&self, kind: Kind) -> Result<Hold> {
        self.server.freeze(kind);
        Ok(Hold {
            began: Instant::now(),
            history: NodeHistory::of_nodes(&self.client).await?,
        })
    }

    pub(crate) async fn turn(&self, node: &str, status: &str) -> Result<()> {
        set_node_condition(&self.client, node, NETWORK, status).await
    }

    /// Waits until the node is gated after a list.
    pub(crate) async fn gated_by_a_list(&self, node: &str) -> Result<()> {
        gated_within(&self.client, node, &key(node), LISTED).await
    }

    /// Waits until the node is released after a list.
    pub(crate) async fn released_by_a_list(&self, node: &str) -> Result<()> {
        released_within(&self.client, node, &key(node), LISTED).await
    }
}

impl Hold {
    /// Waits until the earlier evidence is too old to act on.
    pub(crate) async fn gets_old(&self) {
        sleep_until(self.began + OLD).await;
    }

    /// Waits until the hold has lasted long enough, and checks that these nodes were always held or always released.
    pub(crate) async fn kept(&self, scene: &Scene, nodes: &[(&str, Kept)]) -> Result<()> {
        sleep_until(self.began + HELD).await;
        let mut wrong = Vec::new();
        for (node, kept) in nodes {
            let states = self.history.up_to(&scene.client, node).await?;
            let states = states.get(*node).context("no node was seen")?;
            let mut held = states.iter().map(|it| count_taints(it, &key(node)) > 0);
            if held.any(|held| held != (*kept == Kept::Held)) {
                wrong.push(format!("{node} was not kept {kept:?}"));
            }
        }
        ensure!(wrong.is_empty(), "{wrong:?}");
        Ok(())
    }
}

/// The constant state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Released,
    Held,
}

/// A rule for the node of this name.
pub(crate) fn rule_of(name: &str) -> RuleBuilder {
    rule(name, &key(name)).selects("name", name)
}

/// A bootstrap rule for the node of this name, which waits for the network and this condition.
pub(crate) fn gate(name: &str, kind: &str) -> RuleBuilder {
    let gate = rule_of(name).bootstrap_only();
    gate.waits_for(NETWORK).waits_for(kind)
}

/// A node with this network status.
pub(crate) fn networked(name: &str, network: &str) -> NodeBuilder {
    let node = node(name).label("name", name);
    node.condition(NETWORK, network)
}

/// A critical pod on the node of this name.
pub(crate) fn critical_pod(name: &str) -> PodBuilder {
    pod(&format!("kube-system/{name}")).critical().on(name)
}
