//! Labelled `DaemonSet`s that no node waits for, and the warnings about them: one that does not tolerate the gate could never
//! start, and one outside its class's namespaces might not come from the cluster's operators.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams};
use nodegate_testbed::fixtures::{self, CRITICAL};
use nodegate_testbed::sights::{events_about, rule_condition, rule_status};
use nodegate_testbed::{eventually, eventually_eq};
use serde_json::json;

use crate::pool::{NAMESPACE, POOL, Pool};
use crate::{COMPONENTS_READY, GATE, INSTALLATION, NO_SCHEDULE, SAMPLE_NAME, SOON};

const SHUT_OUT: &str = "DaemonSetsShutOut";
const OUTSIDE: &str = "DaemonSetsOutsideNamespaces";

/// The message of the rule's condition of this type, if it has one.
async fn said_on_the_rule(pool: &Pool, rule: &str, kind: &str) -> Result<Option<String>> {
    let condition = rule_condition(&pool.client, rule, kind).await?;
    Ok(condition["message"].as_str().map(str::to_owned))
}

/// Gardener's rule reports it with a condition, a warning event and a log line.
async fn is_said(pool: &Pool, kind: &str, said: &str) -> Result<()> {
    eventually_eq(
        "the rule says it",
        SOON,
        Some(said.to_owned()),
        async || said_on_the_rule(pool, SAMPLE_NAME, kind).await,
    )
    .await?;
    let event = eventually("an event says it", SOON, async || {
        let events = events_about(&pool.client, "NodeReadinessRule", SAMPLE_NAME).await?;
        let is_it = |event: &Event| event.message.as_deref() == Some(said);
        Ok(events.into_iter().find(is_it))
    })
    .await?;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.reason.as_deref(), Some(kind));
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
    is_said(&pool, SHUT_OUT, &said).await?;

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
        said_on_the_rule(&pool, SAMPLE_NAME, SHUT_OUT).await
    })
    .await?;
    pool.join(pool.further_node("shut-out-2")).await?;
    let second = Pool::on(pool.cluster, "shut-out-2").await?;
    let why = "DaemonSet kube-system/shut-out-cni has no pod on this node";
    second.is_held_because(why).await
}

#[tokio::test]
async fn a_labelled_daemon_set_outside_kube_system_is_left_out_and_reported() -> Result<()> {
    let pool = Pool::under_gardeners_rule("outside").await?;
    fixtures::daemon_set("default/outside-agent")
        .critical()
        .node_selector(POOL, pool.name)
        .tolerate_everything()
        .never_ready()
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    let said = "not waited for, because their namespaces are not among those of class 'gardener': DaemonSet \
                default/outside-agent (add the namespaces to the class in the configuration file, or take the label off)";
    is_said(&pool, OUTSIDE, said).await?;
    let unlabelled = json!({"metadata": {"labels": {CRITICAL.0: null}}});
    Api::<DaemonSet>::namespaced(pool.client.clone(), "default")
        .patch(
            "outside-agent",
            &PatchParams::default(),
            &Patch::Merge(unlabelled),
        )
        .await?;
    eventually_eq("the rule says it no more", SOON, None, async || {
        said_on_the_rule(&pool, SAMPLE_NAME, OUTSIDE).await
    })
    .await
}

/// A cluster may have a rule and a taint per node pool: `DaemonSet`s of one pool do not concern the others.
#[tokio::test]
async fn a_daemon_set_for_other_nodes_than_the_rules_is_nothing_to_report() -> Result<()> {
    let other = Pool::under_gardeners_rule("other-pool").await?;
    other
        .intolerant_daemon_set("cni")
        .tolerate(GATE, NO_SCHEDULE)
        .create(&other.client)
        .await?;
    other.join(other.node()).await?;
    other.is_held_for_want_of("cni").await?;

    let pool = Pool::under_gardeners_rule("this-pool").await?;
    let rule = pool.rule().bootstrap_only().waits_for(COMPONENTS_READY);
    pool.enforce(rule).await?;
    pool.daemon_set("cni").create(&pool.client).await?;
    pool.join(pool.node()).await?;
    eventually_eq("released nodes", SOON, json!(1), async || {
        let mut status = rule_status(&pool.client, pool.name).await?;
        Ok(status["releasedNodes"].take())
    })
    .await?;
    assert_eq!(said_on_the_rule(&pool, pool.name, SHUT_OUT).await?, None);
    Ok(())
}
