//! Labelled `DaemonSet`s that no node waits for, since they do not tolerate the gate and could never start, and the warnings
//! about them.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams};
use nodegate_testbed::sights::{events_about, rule_condition};
use nodegate_testbed::{eventually, eventually_eq};
use serde_json::json;

use crate::pool::{NAMESPACE, Pool};
use crate::{GATE, INSTALLATION, SAMPLE_NAME, SOON};

const SHUT_OUT: &str = "DaemonSetsShutOut";

/// The message of the rule's condition, if it has one.
async fn said_on_the_rule(pool: &Pool) -> Result<Option<String>> {
    let condition = rule_condition(&pool.client, SAMPLE_NAME, SHUT_OUT).await?;
    Ok(condition["message"].as_str().map(str::to_owned))
}

/// Gardener's rule reports it with a condition, a warning event and a log line.
async fn is_said(pool: &Pool, said: &str) -> Result<()> {
    eventually_eq(
        "the rule says it",
        SOON,
        Some(said.to_owned()),
        async || said_on_the_rule(pool).await,
    )
    .await?;
    let event = eventually("an event says it", SOON, async || {
        let events = events_about(&pool.client, "NodeReadinessRule", SAMPLE_NAME).await?;
        let is_it = |event: &Event| event.message.as_deref() == Some(said);
        Ok(events.into_iter().find(is_it))
    })
    .await?;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.reason.as_deref(), Some(SHUT_OUT));
    let log = INSTALLATION.controller().await?.log();
    log.lines()
        .find(|line| line.contains("WARN") && line.contains(said))
        .with_context(|| format!("the log does not say it:\n{log}"))?;
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_that_does_not_tolerate_the_gate_is_left_out_and_reported() -> Result<()> {
    let pool = Pool::under_gardeners_rule("shut-out").await?;
    pool.intolerant_daemon_set("cni")
        .never_ready()
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    let said = format!(
        "not waited for, because they do not tolerate taint {GATE}:NoSchedule: DaemonSet {NAMESPACE}/shut-out-cni \
         (add the toleration to their pod template)"
    );
    is_said(&pool, &said).await?;

    // As soon as it tolerates the gate, nodes wait for it.
    let tolerations = json!([{"key": GATE, "operator": "Exists"}]);
    let patch = json!({"spec": {"template": {"spec": {"tolerations": tolerations}}}});
    Api::<DaemonSet>::namespaced(pool.client.clone(), NAMESPACE)
        .patch(
            "shut-out-cni",
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await?;
    eventually_eq("the rule says it no more", SOON, None, async || {
        said_on_the_rule(&pool).await
    })
    .await?;
    pool.join(pool.further_node("shut-out-2")).await?;
    let second = Pool::on(pool.cluster, "shut-out-2").await?;
    let why = "DaemonSet kube-system/shut-out-cni has no pod on this node";
    second.is_held_because(why).await
}
