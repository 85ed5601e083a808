//! What a deleted rule leaves behind.

use anyhow::Result;
use kube::ResourceExt;
use nodegate_testbed::changes::set_node_condition;

use super::rule::{self, bootstrap, completion, completion_by, continuous, ownership};
use super::{READY, annotation, client, eventually_gated, eventually_open, is_gated, key, node};

#[tokio::test]
async fn nothing_is_left_of_a_deleted_rule() -> Result<()> {
    let client = client().await?;
    let rule = bootstrap("deleted").create(&client).await?;
    let observed = rule::eventually_observed(&client, "deleted").await?;
    assert_eq!(observed.finalizers(), [rule::FINALIZER]);
    node("deleted", "deleted-gated").create(&client).await?;
    node("deleted", "deleted-open").create(&client).await?;
    let adopted = node("deleted", "deleted-adopted").taint(&key("deleted"), "NoSchedule");
    adopted.create(&client).await?;
    let old = node("deleted", "deleted-old").annotation(&completion_by("deleted"), "true");
    old.annotation("example.com/other", "kept")
        .create(&client)
        .await?;
    eventually_gated(&client, "deleted-gated", "deleted").await?;
    eventually_gated(&client, "deleted-open", "deleted").await?;
    set_node_condition(&client, "deleted-open", READY, "True").await?;
    eventually_open(&client, "deleted-open", "deleted").await?;

    rule::delete(&client, "deleted").await?;
    // The rule goes last, so no further wait is needed.
    for name in [
        "deleted-gated",
        "deleted-open",
        "deleted-adopted",
        "deleted-old",
    ] {
        assert!(
            !is_gated(&client, name, "deleted").await?,
            "{name} is gated"
        );
        for key in [
            completion(&rule),
            completion_by("deleted"),
            ownership(&rule),
        ] {
            assert_eq!(annotation(&client, name, &key).await?, None, "{name}");
        }
    }
    let other = annotation(&client, "deleted-old", "example.com/other").await?;
    assert_eq!(other.as_deref(), Some("kept"));
    Ok(())
}

#[tokio::test]
async fn a_rule_is_deleted_even_when_no_node_was_ever_there() -> Result<()> {
    let client = client().await?;
    continuous("empty").create(&client).await?;
    rule::eventually_counts(&client, "empty", [0, 0, 0]).await?;
    rule::delete(&client, "empty").await
}
