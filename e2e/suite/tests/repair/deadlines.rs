//! A node's deadline, as recorded.

use anyhow::Result;
use nodegate_testbed::Controller;

use super::{
    SOON, are_left_alone, claim, deadline_key, eventually_deleted_within, in_seconds, key, node,
    own_cluster, rule,
};

#[tokio::test]
async fn a_deadline_on_record_outlives_a_restart() -> Result<()> {
    const TEST: &str = "restart";
    let (cluster, client) = own_cluster().await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    node(TEST, "restart-late")
        .taint(&key(TEST), "NoSchedule")
        .annotation(&deadline_key(&rule), &in_seconds(-5))
        .create(&client)
        .await?;
    claim(TEST, "restart-late").create(&client).await?;
    node(TEST, "restart-early").create(&client).await?;
    claim(TEST, "restart-early").create(&client).await?;
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    eventually_deleted_within(&client, "restart-late", SOON).await?;
    are_left_alone(&client, &["restart-early"]).await
}
