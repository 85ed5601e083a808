//! The controller is told to end in the midst of its work.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::ResourceExt;
use nodegate_tests::PROMPTLY;
use nodegate_tests::network::{TAINT, count_gated, create_nodes, network_rule, owners};
use testkit::nodegate::state::{count_taints, events_on, nodes};
use testkit::nodegate::{Cluster, Controller, Options, eventually};

#[tokio::test]
async fn a_controller_that_is_stopped_finishes_and_reports_the_writes_under_way() -> Result<()> {
    const COUNT: usize = 400;
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let controller = Controller::start(
        &cluster,
        &["--node-concurrent-reconciles=2", "--max-first-gated=100%"],
    )
    .await?;
    network_rule("network").create(&client).await?;
    eventually("the gating is under way", PROMPTLY, async || {
        Ok(count_gated(&client).await? > 0)
    })
    .await?;
    let asked = Instant::now();
    let status = controller.stop().await?;
    let took = asked.elapsed();
    assert_eq!(status.code(), Some(0));
    ensure!(took < Duration::from_secs(10), "it took {took:?} to end");

    let gated = count_gated(&client).await?;
    ensure!(gated < COUNT, "it was too fast to be stopped in the midst");
    let mut told = 0;
    for node in nodes(&client).await? {
        let is_gated = count_taints(&node, TAINT) == 1;
        assert_eq!(
            owners(&node).len(),
            usize::from(is_gated),
            "{}",
            node.name_any()
        );
        told += events_on(&client, &node.name_any()).await?.len();
    }
    assert_eq!(
        told, gated,
        "each change has its event, those at the end too"
    );
    let writes = cluster.controllers_writes();
    let writes = writes.iter().filter(|write| write.changed_a_node());
    assert_eq!(writes.count(), gated);
    Ok(())
}
