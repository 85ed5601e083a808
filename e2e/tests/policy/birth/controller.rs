//! The controller does without the policy where the API server has none.

use anyhow::{Result, ensure};
use nodegate_tests::gates::eventually_gated;
use testkit::nodegate::fixtures::{node, rule};
use testkit::nodegate::{Cluster, Controller, Options};

use super::{CONDITION, has_policies, key, keys};

#[tokio::test]
async fn without_mutating_policies_the_controller_gates_nodes_itself() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    if has_policies(&client).await? {
        return Ok(());
    }
    let _controller = Controller::start(&cluster, &[]).await?;
    let rule = rule("always", &key("always")).waits_for(CONDITION);
    rule.selects("born", "yes").create(&client).await?;
    let node = node("unready").label("born", "yes");
    let node = node.condition(CONDITION, "False");
    let node = node.create(&client).await?;
    ensure!(keys(&node).is_empty(), "{node:?}");
    eventually_gated(&client, "unready", &key("always")).await
}
