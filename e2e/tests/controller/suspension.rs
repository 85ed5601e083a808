//! Suspends all rules, by a flag or by the Lease's annotation, within seconds and without a restart.

use std::time::Duration;

use anyhow::{Result, ensure};
use nodegate_tests::gates::eventually_gated;
use nodegate_tests::network::{CONDITION, TAINT, create_node, network_rule};
use nodegate_tests::rules::{LEASE, annotate_lease, eventually_says};
use nodegate_tests::{SOON, has_words};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::install::{NAMESPACE, manifests};
use testkit::nodegate::state::{has_taint, reasons_about};
use testkit::nodegate::{Cluster, Controller, Options, eventually_eq, never};
use tokio::time::sleep;

/// How long the global suspension may take.
const BRAKE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn an_annotation_of_the_lease_suspends_all_rules_within_three_seconds() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    let client = cluster.client().await?;
    network_rule("network").create(&client).await?;
    create_node(&client, "a", "False").await?;
    eventually_gated(&client, "a", TAINT).await?;
    annotate_lease(&cluster, "nodegate.dev/suspend-all=true").await?;
    sleep(BRAKE).await;
    set_node_condition(&client, "a", CONDITION, "True").await?;
    // Longer than a renewal of the lease, which keeps the annotation.
    never("the node is released", 2 * BRAKE, async || {
        Ok(!has_taint(&client, "a", TAINT).await?)
    })
    .await?;
    let told = vec!["RulesSuspended".to_owned()];
    eventually_eq("it is told", SOON, told, async || {
        reasons_about(&client, "NodeReadinessRule", "network").await
    })
    .await?;
    annotate_lease(&cluster, "nodegate.dev/suspend-all-").await?;
    sleep(BRAKE).await;
    ensure!(
        !has_taint(&client, "a", TAINT).await?,
        "it went on too late"
    );
    ensure!(controller.is_ready().await, "it still leads");
    ensure!(
        !controller.log().contains("cannot renew the lease"),
        "{}",
        controller.log()
    );
    Ok(())
}

#[tokio::test]
async fn the_brake_stays_on_by_any_word_when_somebody_deletes_the_lease() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    let client = cluster.client().await?;
    network_rule("network").create(&client).await?;
    create_node(&client, "a", "False").await?;
    eventually_gated(&client, "a", TAINT).await?;
    annotate_lease(&cluster, "nodegate.dev/suspend-all=yes").await?;
    eventually_says(&client, "network", "Suspended", "True").await?;
    has_words(&controller.log(), "neither true nor false")?;
    let delete = format!("delete -n {NAMESPACE} lease {LEASE}");
    cluster.types(&delete).await?;
    set_node_condition(&client, "a", CONDITION, "True").await?;
    let value = "jsonpath={.metadata.annotations.nodegate\\.dev/suspend-all}";
    let get = format!("get -n {NAMESPACE} lease {LEASE} --ignore-not-found -o {value}");
    let same = "yes".to_owned();
    eventually_eq("the next Lease says the same", SOON, same, async || {
        cluster.types(&get).await
    })
    .await?;
    never("the node is released", 2 * BRAKE, async || {
        Ok(!has_taint(&client, "a", TAINT).await?)
    })
    .await
}

#[tokio::test]
async fn a_controller_that_cannot_read_the_lease_is_not_ready() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    let binding = "rolebinding/nrr-leader-election-rolebinding";
    let delete = format!("delete -n {NAMESPACE} {binding}");
    cluster.types(&delete).await?;
    let controller = Controller::spawn(&cluster, &["--leader-elect"], &[]).await?;
    let why = "the Lease has not been read yet, which says whether all rules are suspended";
    controller.until_unready(why, SOON).await?;
    let role = manifests("rbac").join("leader_election_role.yaml");
    cluster.kubectl_on(&["apply"], &role).await?;
    controller.until_ready(SOON).await
}

#[tokio::test]
async fn a_flag_suspends_all_rules() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let _controller = Controller::start(&cluster, &["--suspend-all", "--leader-elect"]).await?;
    let client = cluster.client().await?;
    network_rule("network").create(&client).await?;
    create_node(&client, "a", "False").await?;
    eventually_says(&client, "network", "Suspended", "True").await?;
    ensure!(!has_taint(&client, "a", TAINT).await?, "it was gated");
    Ok(())
}
