//! The API server refuses what the controller does, or somebody reverses it. The controller slows down, and other nodes and
//! rules do not wait for that.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use nodegate_suite::network::{CONDITION, TAINT, name};
use nodegate_suite::{PROMPTLY, turn};
use nodegate_testbed::changes::{delete_node, patch_node, set_node_condition};
use nodegate_testbed::fixtures::{node, rule};
use nodegate_testbed::install::config;
use nodegate_testbed::sights::{
    count_taints, events_on, has_taint, nodes, rule_condition, rule_status,
};
use nodegate_testbed::{Cluster, Controller, Options, eventually, eventually_eq, never};
use serde_json::json;

const REFUSED: &str = "readiness.k8s.io/refused";

#[tokio::test]
async fn a_taint_that_somebody_keeps_removing_is_restored_ever_more_slowly() -> Result<()> {
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    node("disputed").create(&client).await?;
    node("quiet").create(&client).await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    let network = rule("network", TAINT).waits_for(CONDITION);
    network.create(&client).await?;

    let start = Instant::now();
    let mut undone = 0;
    while start.elapsed() < Duration::from_secs(15) {
        if has_taint(&client, "disputed", TAINT).await? {
            let none = json!({"spec": {"taints": null}});
            patch_node(&client, "disputed", &none).await?;
            undone += 1;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let writes = cluster.controllers_writes();
    let writes = writes
        .iter()
        .filter(|write| write.resource == "nodes" && write.name == "disputed");
    let writes = writes.count();
    // Five at once, and then after at most 5 s, 10 s, 20 s.
    ensure!(
        (5..=12).contains(&writes),
        "{writes} writes, undone {undone} times"
    );
    let contended = async || {
        let events = events_on(&client, "disputed").await?;
        let contended = |reason: &Option<String>| reason.as_deref() == Some("TaintContended");
        Ok(events
            .iter()
            .filter(|event| contended(&event.reason))
            .count())
    };
    eventually_eq("it is told once", PROMPTLY, 1, contended).await?;
    ensure!(has_taint(&client, "quiet", TAINT).await?);

    // The other one has stopped.
    let patience = Duration::from_secs(40);
    eventually("the taint is back", patience, async || {
        has_taint(&client, "disputed", TAINT).await
    })
    .await?;
    // Contention does not delay the rule's own changes.
    set_node_condition(&client, "disputed", CONDITION, "True").await?;
    eventually("the node is open", Duration::from_secs(5), async || {
        Ok(!has_taint(&client, "disputed", TAINT).await?)
    })
    .await?;
    assert_eq!(contended().await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_taint_that_is_refused_holds_up_no_other_and_is_blamed_alone() -> Result<()> {
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    refuse(&cluster, &client).await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    for (name, taint) in [("refused", REFUSED), ("network", TAINT)] {
        rule(name, taint)
            .waits_for(CONDITION)
            .create(&client)
            .await?;
        eventually("the rule is in force", PROMPTLY, async || {
            let accepted = rule_condition(&client, name, "Accepted").await?;
            Ok(accepted["status"] == "True")
        })
        .await?;
    }
    // One patch would add both taints.
    node("mixed").create(&client).await?;
    let taints = async || {
        Ok((
            has_taint(&client, "mixed", TAINT).await?,
            has_taint(&client, "mixed", REFUSED).await?,
        ))
    };
    eventually_eq("the other taint is on", PROMPTLY, (true, false), taints).await?;
    let failed = async || {
        let mut failed = Vec::new();
        for name in ["refused", "network"] {
            let status = rule_status(&client, name).await?;
            failed.push(status["failedNodeCount"].as_u64().unwrap_or_default());
        }
        Ok(failed)
    };
    eventually_eq("one rule is blamed", PROMPTLY, vec![1, 0], failed).await?;
    let message = rule_status(&client, "refused").await?["failedNodes"][0]["message"].take();
    ensure!(
        message
            .as_str()
            .is_some_and(|it| it.contains("refused here")),
        "{message}"
    );

    set_node_condition(&client, "mixed", CONDITION, "True").await?;
    eventually_eq("it is open", PROMPTLY, (false, false), taints).await?;
    eventually_eq("nobody is blamed", PROMPTLY, vec![0, 0], failed).await?;
    set_node_condition(&client, "mixed", CONDITION, "False").await?;
    eventually_eq("it is gated again", PROMPTLY, (true, false), taints).await?;
    allow(&cluster).await?;
    let patience = Duration::from_secs(45);
    eventually_eq("both taints are on", patience, (true, true), taints).await?;
    eventually_eq("nobody is blamed", PROMPTLY, vec![0, 0], failed).await
}

#[tokio::test]
async fn what_all_nodes_are_refused_costs_a_few_requests_a_second() -> Result<()> {
    const COUNT: usize = 300;
    const WHILE: Duration = Duration::from_secs(10);
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    for index in 0..COUNT {
        node(&name(index)).create(&client).await?;
    }
    refuse(&cluster, &client).await?;
    let controller = Controller::start(&cluster, &[]).await?;
    rule("refused", REFUSED)
        .waits_for(CONDITION)
        .create(&client)
        .await?;
    tokio::time::sleep(Duration::from_secs(10)).await;

    let before = (
        cluster.controllers_writes().len(),
        controller.log().lines().count(),
    );
    tokio::time::sleep(WHILE).await;
    let (writes, lines) = (
        cluster.controllers_writes(),
        controller.log().lines().count(),
    );
    let refused = writes[before.0..]
        .iter()
        .filter(|write| write.code == 422 || write.code == 403);
    let refused = refused.count();
    println!(
        "{refused} refused requests and {} log lines in {WHILE:?}",
        lines - before.1
    );
    ensure!((1..=60).contains(&refused), "{refused} refused requests");
    ensure!(lines - before.1 <= 10, "{} log lines", lines - before.1);

    // Another rule's taint does not wait behind all these.
    rule("network", TAINT)
        .waits_for(CONDITION)
        .create(&client)
        .await?;
    let count = async |taint: &str| {
        let nodes = nodes(&client).await?;
        let has = |node: &Node| count_taints(node, taint) > 0;
        anyhow::Ok(nodes.iter().filter(|node| has(node)).count())
    };
    eventually_eq("the other taint is on", PROMPTLY, COUNT, async || {
        count(TAINT).await
    })
    .await?;
    assert_eq!(count(REFUSED).await?, 0);
    allow(&cluster).await?;
    let patience = Duration::from_secs(60);
    eventually_eq("all nodes have both", patience, COUNT, async || {
        count(REFUSED).await
    })
    .await
}

#[tokio::test]
async fn no_more_requests_are_made_a_second_than_the_flags_say() -> Result<()> {
    const COUNT: usize = 40;
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    for index in 0..COUNT {
        node(&name(index)).create(&client).await?;
    }
    let limits = ["--kube-api-qps=10", "--kube-api-burst=5", "--leader-elect"];
    let _controller = Controller::start(&cluster, &limits).await?;
    let writes = || {
        let mut writes = cluster.controllers_writes();
        writes.retain(|write| write.resource != "leases");
        writes.len()
    };
    let (start, before) = (Instant::now(), writes());
    rule("network", TAINT)
        .waits_for(CONDITION)
        .create(&client)
        .await?;
    let mut last = (0, Duration::ZERO);
    never("there are too many", Duration::from_secs(6), async || {
        let elapsed = start.elapsed();
        let made = writes() - before;
        last = (made, elapsed);
        // A burst, ten a second, and what was under way while this was counted.
        Ok(made > 8 + usize::try_from(start.elapsed().as_millis() / 95)?)
    })
    .await?;
    ensure!(last.0 > 35, "only {} in {:?}", last.0, last.1);
    eventually("all nodes are gated", PROMPTLY, async || {
        let nodes = nodes(&client).await?;
        Ok(nodes.iter().all(|node| count_taints(node, TAINT) == 1))
    })
    .await
}

#[tokio::test]
async fn the_api_server_takes_the_share_of_its_attention_that_is_asked_for() -> Result<()> {
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let folder = config("flowcontrol");
    for file in ["priority_level.yaml", "flow_schemas.yaml"] {
        let manifest = std::fs::read_to_string(folder.join(file))?;
        cluster.apply(&manifest).await?;
    }
    for name in ["nrr-leader-election", "nrr-controller-manager"] {
        eventually("the flow schema is in force", PROMPTLY, async || {
            let path = "jsonpath={.status.conditions[?(@.type==\"Dangling\")].status}";
            let dangling = cluster
                .kubectl(&["get", "flowschema", name, "-o", path])
                .await?;
            Ok(dangling.trim() == "False")
        })
        .await?;
    }
    Ok(())
}

/// Makes the API server refuse the taint [`REFUSED`] on every node.
async fn refuse(cluster: &Cluster, client: &Client) -> Result<()> {
    let has_it = "has(object.spec.taints) && object.spec.taints.exists(t, t.key == 'readiness.k8s.io/refused')";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "refused"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"],
            }]},
            "validations": [{"expression": format!("!({has_it})"), "message": "refused here"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "refused"},
        "spec": {"policyName": "refused", "validationActions": ["Deny"]},
    });
    cluster.apply(&policy.to_string()).await?;
    cluster.apply(&binding.to_string()).await?;
    node("probe").create(client).await?;
    let taint = json!({"spec": {"taints": [{"key": REFUSED, "effect": "NoSchedule"}]}});
    eventually("the policy is in force", PROMPTLY, async || {
        Ok(patch_node(client, "probe", &taint).await.is_err())
    })
    .await?;
    delete_node(client, "probe").await
}

async fn allow(cluster: &Cluster) -> Result<()> {
    let binding = "validatingadmissionpolicybinding/refused";
    cluster.kubectl(&["delete", binding]).await?;
    Ok(())
}
