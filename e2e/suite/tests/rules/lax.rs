//! A CRD without validation and without Nodegate's own fields, like the Node Readiness Controller's and older ones. These tests
//! have their own clusters.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::{Cluster, Controller, Options, eventually, eventually_eq, never};
use serde_json::{Value, json};

use super::requests::{at_rest, writes};
use super::rule::{self, bootstrap, continuous};
use super::{
    READY, SOON, eventually_gated, eventually_open, is_gated, key, node, stays_gated, stays_open,
};

/// Starts a cluster whose API server validates no rule and drops fields that upstream does not know.
async fn lax_cluster() -> Result<Cluster> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    cluster.install().await?;
    let crd = "crd/nodereadinessrules.readiness.node.x-k8s.io";
    let manifest = cluster.kubectl(&["get", crd, "-o", "json"]).await?;
    let mut crd: Value = serde_json::from_str(&manifest)?;
    loosen(&mut crd["spec"]["versions"]);
    cluster.apply(&crd.to_string()).await?;
    Ok(cluster)
}

fn loosen(schema: &mut Value) {
    const OURS: [&str; 11] = [
        "disruption",
        "failedNodeCount",
        "gracePeriod",
        "heartbeatTimeout",
        "heldNodes",
        "matchedNodes",
        "regateOnReboot",
        "releasedNodes",
        "repair",
        "taintPolicy",
        "x-kubernetes-validations",
    ];
    match schema {
        Value::Array(items) => items.iter_mut().for_each(loosen),
        Value::Object(fields) => {
            fields.retain(|name, _| !OURS.contains(&name.as_str()));
            fields.values_mut().for_each(loosen);
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_rule_that_cannot_work_is_turned_down_and_the_others_go_on() -> Result<()> {
    let cluster = lax_cluster().await?;
    let client = cluster.client().await?;
    let any_of = json!({"conditionPolicy": "anyOf", "enforcementMode": "bootstrap-only"});
    let refused = [
        (
            "refused-any-of",
            any_of,
            "spec.conditionPolicy: Forbidden: anyOf",
        ),
        (
            "refused-key",
            json!({"taint": {"key": "example.com/x"}}),
            "must start with 'readiness.k8s.io/'",
        ),
        (
            "refused-selector",
            json!({"nodeSelector": {"matchLabels": null}}),
            "must not be empty",
        ),
    ];
    let eventually_refused = async |name: &str, why: &str| {
        let accepted = rule::eventually_says(&client, name, "Accepted", "False").await?;
        let message = accepted["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{name}: {message}");
        assert_eq!(accepted["reason"], "Invalid");
        anyhow::Ok(())
    };
    // The first exists when the controller starts.
    let mut controller = None;
    for (name, spec, why) in refused {
        continuous(name).with(&spec).create(&client).await?;
        node(name, name).create(&client).await?;
        if controller.is_none() {
            controller = Some(Controller::start(&cluster, &[]).await?);
        }
        eventually_refused(name, why).await?;
    }
    continuous("accepted").create(&client).await?;
    node("accepted", "accepted").create(&client).await?;
    eventually_gated(&client, "accepted", "accepted").await?;
    for name in ["refused-any-of", "refused-key", "refused-selector"] {
        stays_open(&client, name, name).await?;
        rule::delete(&client, name).await?;
    }
    let said = eventually("the rejections are told", SOON, async || {
        let rejected = ListParams::default().fields("reason=RuleRejected");
        let events = Api::<Event>::all(client.clone()).list(&rejected).await?;
        let rules = events.into_iter().map(|event| event.involved_object.name);
        let rules: Vec<_> = rules.flatten().collect();
        Ok(Some(rules).filter(|rules| rules.len() >= 3))
    })
    .await?;
    assert_eq!(said.len(), 3, "{said:?}");
    Ok(())
}

#[tokio::test]
async fn the_taints_of_a_rule_that_cannot_be_used_go_with_it() -> Result<()> {
    let cluster = lax_cluster().await?;
    let client = cluster.client().await?;
    // As the Node Readiness Controller leaves them.
    let default = json!([{"type": READY, "requiredStatus": "True", "defaultStatus": "True"}]);
    let legacy = [
        ("legacy-any-of", json!({"conditionPolicy": "anyOf"})),
        ("legacy-default", json!({"conditions": default})),
        (
            "legacy-selector",
            json!({"nodeSelector": {"matchLabels": null}}),
        ),
    ];
    for (name, spec) in &legacy {
        bootstrap(name).with(spec).create(&client).await?;
        let finalizer = json!({"metadata": {"finalizers": [rule::FINALIZER]}});
        rule::rules(&client)
            .patch(name, &PatchParams::default(), &Patch::Merge(finalizer))
            .await?;
        let tainted = node(name, name).taint(&key(name), "NoSchedule");
        tainted.create(&client).await?;
    }
    let _controller = Controller::start(&cluster, &[]).await?;
    for (name, _) in &legacy {
        rule::eventually_says(&client, name, "Accepted", "False").await?;
        stays_gated(&client, name, name).await?;
        rule::delete(&client, name).await?;
        // The rule goes last, so no further wait is needed.
        assert!(!is_gated(&client, name, name).await?, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_status_that_the_crd_does_not_hold_in_full_is_not_written_over_and_over() -> Result<()> {
    let cluster = lax_cluster().await?;
    let client = cluster.client().await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    continuous("upstream").create(&client).await?;
    node("upstream", "upstream").create(&client).await?;
    eventually_gated(&client, "upstream", "upstream").await?;
    set_node_condition(&client, "upstream", READY, "True").await?;
    eventually_open(&client, "upstream", "upstream").await?;
    eventually_eq("the status", SOON, json!("Absent"), async || {
        let status = rule::status(&client, "upstream").await?;
        Ok(status["nodeEvaluations"][0]["taintStatus"].clone())
    })
    .await?;
    let status = rule::status(&client, "upstream").await?;
    assert_eq!(status["matchedNodes"], Value::Null);
    assert_eq!(status["appliedNodes"], json!(["upstream"]));
    let before = at_rest(&cluster, "upstream").await?;
    never("a write", Duration::from_secs(3), async || {
        Ok(writes(&cluster, "upstream")? != before)
    })
    .await?;
    Ok(())
}
