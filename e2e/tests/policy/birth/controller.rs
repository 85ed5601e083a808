//! The controller beside the policy: it suspends gating at birth, and does without where there is no such policy.

use anyhow::{Result, ensure};
use nodegate_tests::SOON;
use nodegate_tests::gates::eventually_gated;
use nodegate_tests::rules::annotate_lease;
use testkit::nodegate::fixtures::{NodeBuilder, node, rule};
use testkit::nodegate::{Cluster, Controller, Options, eventually_eq};

use super::{CONDITION, has_policies, install, key, keys, tried};

fn born(name: &str) -> NodeBuilder {
    node(name).label("born", "yes")
}

#[tokio::test]
async fn no_node_is_held_at_birth_while_all_rules_are_suspended() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    if !install(&cluster).await? {
        return Ok(());
    }
    let client = cluster.client().await?;
    let _controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    for name in ["always", "once"] {
        let rule = rule(name, &key(name)).waits_for(CONDITION);
        rule.selects("born", "yes").create(&client).await?;
    }
    let gated = async || Ok(keys(&tried(&client, born("nobody")).await?).len());
    eventually_eq("the API server knows the rules", SOON, 2, gated).await?;
    for (annotation, held) in [
        ("nodegate.dev/suspend-all=true", 0),
        ("nodegate.dev/suspend-all-", 2),
    ] {
        annotate_lease(&cluster, annotation).await?;
        eventually_eq(annotation, SOON, held, gated).await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_mutating_policies_the_controller_says_so_and_gates_nodes_itself() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    if has_policies(&client).await? {
        return Ok(());
    }
    let controller = Controller::start(&cluster, &[]).await?;
    let why = "the API server has no MutatingAdmissionPolicy (Kubernetes 1.36)";
    controller.says(why, SOON).await?;
    let rule = rule("always", &key("always")).waits_for(CONDITION);
    rule.selects("born", "yes").create(&client).await?;
    let node = born("unready").condition(CONDITION, "False");
    let node = node.create(&client).await?;
    ensure!(keys(&node).is_empty(), "{node:?}");
    eventually_gated(&client, "unready", &key("always")).await
}
