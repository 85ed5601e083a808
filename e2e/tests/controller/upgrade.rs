//! From an earlier version to this one and back, on one cluster. `hack/test-upgrade` builds the earlier version and runs this.
//!
//! The steps are those of `docs/upgrade.md`.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::{Client, ResourceExt};
use nodegate_tests::SOON;
use nodegate_tests::gates::{eventually_gated, eventually_released};
use serde_json::{Value, json};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::{node, rule, rules};
use testkit::nodegate::install::{CRD, repository};
use testkit::nodegate::{Cluster, Controller, Options, eventually, state};

const NETWORK: &str = "readiness.k8s.io/network";
const AGENT: &str = "readiness.k8s.io/agent";
const NETWORK_READY: &str = "example.com/NetworkReady";
const AGENT_READY: &str = "example.com/AgentReady";
const RULES: [&str; 2] = ["network", "agent"];

/// The nodes, with the statuses of both conditions.
const NODES: [(&str, [&str; 2]); 3] = [
    ("released", ["True", "True"]),
    ("held-by-network", ["False", "True"]),
    ("held-by-agent", ["True", "False"]),
];

/// What has to survive: by name, the taints and records of a node, or the UID and finalizers of a rule.
type Kept = BTreeMap<String, Value>;

#[tokio::test]
#[ignore = "takes the build of an earlier version: hack/test-upgrade COMMIT"]
async fn an_earlier_version_is_upgraded_and_rolled_back() -> Result<()> {
    let given = |name: &'static str| env::var_os(name).map(PathBuf::from).context(name);
    let before = given("NODEGATE_BEFORE")?;
    let build = given("NODEGATE_BEFORE_BIN")?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install_without_crd().await?;
    apply_crd(&cluster, &before).await?;

    let earlier = Controller::start_build(&build, &cluster, &["--leader-elect"]).await?;
    for (name, [network, agent]) in NODES {
        let node = node(name)
            .condition(NETWORK_READY, network)
            .condition(AGENT_READY, agent);
        node.create(&client).await?;
    }
    let network = rule("network", NETWORK).waits_for(NETWORK_READY);
    network.bootstrap_only().create(&client).await?;
    let agent = rule("agent", AGENT).waits_for(AGENT_READY);
    agent.create(&client).await?;
    eventually_gated(&client, "held-by-network", NETWORK).await?;
    eventually_gated(&client, "held-by-agent", AGENT).await?;
    let completed = |node: &Value| {
        let records = node["annotations"].as_object();
        records.is_some_and(|all| all.keys().any(|key| key.contains("/bootstrap-completed-")))
    };
    eventually("all is on record", SOON, async || {
        let kept = kept(&client).await?;
        let is_owned = |node: &str| kept[node].to_string().contains("/taint-added-by-");
        let are_completed = ["released", "held-by-agent"].map(|node| completed(&kept[node]));
        let are_owned = ["held-by-network", "held-by-agent"].map(is_owned);
        Ok(are_completed == [true; 2] && are_owned == [true; 2])
    })
    .await?;
    let expected = kept(&client).await?;

    apply_crd(&cluster, &repository()).await?;
    let this = Controller::start(&cluster, &["--leader-elect"]).await?;
    earlier.stop().await?;
    works(&client, "upgraded").await?;
    assert_eq!(kept(&client).await?, expected, "after the upgrade");

    let earlier = Controller::start_build(&build, &cluster, &["--leader-elect"]).await?;
    this.stop().await?;
    works(&client, "rolled-back").await?;
    assert_eq!(kept(&client).await?, expected, "after the way back");
    apply_crd(&cluster, &before).await?;
    works(&client, "with-its-own-crd").await?;
    assert_eq!(kept(&client).await?, expected, "under the earlier CRD");
    earlier.stop().await?;
    Ok(())
}

/// Applies the CRD of a version over the one that is there.
async fn apply_crd(cluster: &Cluster, version: &Path) -> Result<()> {
    cluster.apply_over(&version.join("config/crd")).await?;
    cluster.until_established(CRD).await
}

/// The version that leads gates a node that joins, and releases it.
async fn works(client: &Client, name: &str) -> Result<()> {
    let joining = node(name).condition(AGENT_READY, "True");
    joining.create(client).await?;
    eventually_gated(client, name, NETWORK).await?;
    set_node_condition(client, name, NETWORK_READY, "True").await?;
    eventually_released(client, name, NETWORK).await
}

async fn kept(client: &Client) -> Result<Kept> {
    let mut kept = Kept::new();
    for (name, _) in NODES {
        let node = state::node(client, name).await?;
        let ours =
            |key: &str| key.starts_with("nodegate.dev/") || key.starts_with("readiness.k8s.io/");
        let records = node.annotations().iter().filter(|(key, _)| ours(key));
        let records: BTreeMap<_, _> = records.collect();
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
        let state = json!({"annotations": records, "taints": taints});
        kept.insert(name.to_owned(), state);
    }
    for name in RULES {
        let rule = rules(client).get(name).await?;
        let state = json!({"uid": rule.uid(), "finalizers": rule.finalizers()});
        kept.insert(name.to_owned(), state);
    }
    Ok(kept)
}
