//! The events about a node, and their number.

use anyhow::Result;
use k8s_openapi::api::core::v1::Event;
use kube::{Client, ResourceExt};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::{eventually_eq, sights};

use super::rule::{self, bootstrap, continuous};
use super::{READY, SOON, client, eventually_gated, eventually_open, key, node, stays_gated};

/// The events about a node, oldest first: reason, action, note.
async fn said_about(client: &Client, node: &str) -> Result<Vec<[String; 3]>> {
    let text = |text: Option<String>| text.unwrap_or_default();
    let events = sights::events_on(client, node).await?;
    Ok(events
        .into_iter()
        .map(|event| [text(event.reason), text(event.action), text(event.message)])
        .collect())
}

/// The event of a rule's change (`Added`, `Removed`, `Adopted`).
fn says(what: &str, rule: &str) -> [String; 3] {
    let (action, said) = match what {
        "Added" => ("AddTaint", "added by"),
        "Removed" => ("RemoveTaint", "removed by"),
        _ => ("AdoptTaint", "is now managed by"),
    };
    let note = format!("Taint '{}:NoSchedule' {said} rule '{rule}'", key(rule));
    [format!("Taint{what}"), action.to_owned(), note]
}

async fn eventually_said(client: &Client, node: &str, expected: &[[String; 3]]) -> Result<()> {
    let what = format!("what is said about {node}");
    eventually_eq(&what, SOON, expected.to_vec(), async || {
        said_about(client, node).await
    })
    .await
}

#[tokio::test]
async fn each_taint_added_or_removed_is_an_event_on_the_node() -> Result<()> {
    let client = client().await?;
    continuous("told").create(&client).await?;
    let created = node("told", "told").create(&client).await?;
    eventually_gated(&client, "told", "told").await?;
    set_node_condition(&client, "told", READY, "True").await?;
    eventually_open(&client, "told", "told").await?;
    set_node_condition(&client, "told", READY, "False").await?;
    let expected = ["Added", "Removed", "Added"].map(|what| says(what, "told"));
    eventually_said(&client, "told", &expected).await?;

    for event in sights::events_on(&client, "told").await? {
        let Event {
            involved_object,
            reporting_component,
            type_,
            ..
        } = event;
        assert_eq!(
            reporting_component.as_deref(),
            Some("node-readiness-controller")
        );
        assert_eq!(type_.as_deref(), Some("Normal"));
        assert_eq!(involved_object.uid, created.uid());
        assert_eq!(involved_object.kind.as_deref(), Some("Node"));
    }
    Ok(())
}

#[tokio::test]
async fn a_taint_that_the_node_registered_with_is_adopted_once_and_lifted() -> Result<()> {
    let client = client().await?;
    bootstrap("adopted").create(&client).await?;
    rule::eventually_observed(&client, "adopted").await?;
    let registers = node("adopted", "adopted").taint(&key("adopted"), "NoSchedule");
    registers.create(&client).await?;
    eventually_said(&client, "adopted", &[says("Adopted", "adopted")]).await?;
    for status in ["False", "Unknown", "False"] {
        set_node_condition(&client, "adopted", READY, status).await?;
    }
    stays_gated(&client, "adopted", "adopted").await?;

    set_node_condition(&client, "adopted", READY, "True").await?;
    eventually_open(&client, "adopted", "adopted").await?;
    let completed = [
        "BootstrapCompleted",
        "CompleteBootstrap",
        "Bootstrap of this node completed under rule 'adopted'",
    ];
    let expected = [
        says("Adopted", "adopted"),
        says("Removed", "adopted"),
        completed.map(str::to_owned),
    ];
    eventually_said(&client, "adopted", &expected).await
}
