//! Faults of the Node Readiness Controller that its users have reported, by issue number. Fault 253, a node that joins during
//! warm-up, is in `away`; fault 215, a node both applied and failed, is in `frozen`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use nodegate_testbed::changes::{delete_node, patch_node, set_node_condition};
use nodegate_testbed::{eventually, never, sights};
use serde_json::json;

use super::history::{History, has_taint_of};
use super::requests::writes;
use super::rule::{self, bootstrap, completion, completion_by, continuous, ownership};
use super::{
    A_WHILE, READY, SOON, annotation, client, eventually_gated, eventually_open, is_gated, key,
    node, stays_open,
};

/// Fault 83.
#[tokio::test]
async fn a_rule_deleted_amid_node_events_leaves_no_taint() -> Result<()> {
    let client = client().await?;
    let names: Vec<String> = (0..4).map(|number| format!("amid-{number}")).collect();
    for name in &names {
        node("amid", name).create(&client).await?;
    }
    for mode in ["continuous", "bootstrap-only"] {
        let rule = continuous("amid").with(&json!({"enforcementMode": mode}));
        let rule = rule.create(&client).await?;
        for name in &names {
            eventually_gated(&client, name, "amid").await?;
        }
        let is_over = AtomicBool::new(false);
        let flipping = async {
            while !is_over.load(Ordering::Relaxed) {
                for status in ["True", "False"] {
                    for name in &names {
                        set_node_condition(&client, name, READY, status).await?;
                    }
                }
            }
            anyhow::Ok(())
        };
        let deleting = async {
            tokio::time::sleep(A_WHILE).await;
            let deleted = rule::delete(&client, "amid").await;
            tokio::time::sleep(A_WHILE).await;
            is_over.store(true, Ordering::Relaxed);
            deleted
        };
        let (flipped, deleted) = tokio::join!(flipping, deleting);
        flipped?;
        deleted?;
        for name in &names {
            stays_open(&client, name, "amid").await?;
            for key in [ownership(&rule), completion(&rule)] {
                assert_eq!(annotation(&client, name, &key).await?, None, "{mode}");
            }
        }
    }
    Ok(())
}

/// Fault 382.
#[tokio::test]
async fn a_taint_beside_the_completion_is_lifted_when_the_conditions_are_met() -> Result<()> {
    let client = client().await?;
    let rule = bootstrap("beside").create(&client).await?;
    let completed = node("beside", "beside").condition(READY, "True");
    completed.create(&client).await?;
    let recorded = async || annotation(&client, "beside", &completion(&rule)).await;
    eventually("the bootstrap is complete", SOON, recorded).await?;
    let taint = json!([{"key": key("beside"), "effect": "NoSchedule"}]);
    for status in ["True", "False"] {
        set_node_condition(&client, "beside", READY, status).await?;
        patch_node(&client, "beside", &json!({"spec": {"taints": taint}})).await?;
        if status == "False" {
            super::stays_gated(&client, "beside", "beside").await?;
            set_node_condition(&client, "beside", READY, "True").await?;
        }
        eventually_open(&client, "beside", "beside").await?;
        assert!(recorded().await?.is_some());
    }
    Ok(())
}

/// Fault 207.
#[tokio::test]
async fn a_lost_completion_is_on_record_again_while_the_conditions_are_met() -> Result<()> {
    let client = client().await?;
    let rule = bootstrap("lost").create(&client).await?;
    let created = node("lost", "lost").condition(READY, "True");
    let created = created.create(&client).await?;
    let history = History::since(&client, created).await?;
    let recorded = async || annotation(&client, "lost", &completion(&rule)).await;
    eventually("the bootstrap is complete", SOON, recorded).await?;
    let lose = json!({"metadata": {"annotations": {completion(&rule): null}}});
    patch_node(&client, "lost", &lose).await?;
    eventually("the bootstrap is complete again", SOON, recorded).await?;
    set_node_condition(&client, "lost", READY, "False").await?;
    stays_open(&client, "lost", "lost").await?;
    let states = history.states().await?;
    assert!(!states.iter().any(|node| has_taint_of(node, "lost")));

    // Without a record and with unmet conditions, the node is like one that has just joined.
    patch_node(&client, "lost", &lose).await?;
    eventually_gated(&client, "lost", "lost").await
}

/// Faults 180 and 292.
#[tokio::test]
async fn taints_that_others_set_at_the_same_time_are_never_lost() -> Result<()> {
    let cluster = super::cluster().await?;
    let client = cluster.client().await?;
    let rule = continuous("contended").create(&client).await?;
    let created = node("contended", "contended").create(&client).await?;
    eventually_gated(&client, "contended", "contended").await?;
    let history = History::since(&client, created).await?;
    let (is_over, toggled) = (AtomicBool::new(false), AtomicUsize::new(0));
    let competing = async {
        while !is_over.load(Ordering::Relaxed) {
            toggled.fetch_add(
                usize::from(toggle(&client, "contended").await?),
                Ordering::Relaxed,
            );
        }
        anyhow::Ok(())
    };
    let flipping = async {
        let flipped = flip(&client, "contended", 20).await;
        is_over.store(true, Ordering::Relaxed);
        flipped
    };
    let (competed, flipped) = tokio::join!(competing, flipping);
    competed?;
    flipped?;

    let states = history.states().await?;
    let theirs = |node: &Node| taints_of(node).any(|taint| taint.key == COMPETITOR);
    let changes = states
        .windows(2)
        .filter(|pair| theirs(&pair[0]) != theirs(&pair[1]));
    assert_eq!(changes.count(), toggled.load(Ordering::Relaxed));
    for node in &states {
        let is_owned = node.annotations().contains_key(&ownership(&rule));
        assert_eq!(is_owned, has_taint_of(node, "contended"), "{node:?}");
        let born_with = taints_of(node).any(|taint| taint.key == "node.kubernetes.io/not-ready");
        assert!(born_with, "{node:?}");
    }
    let after = writes(cluster, "contended")?;
    let on_node = after.iter().filter(|write| write.resource == "nodes");
    let conflicts = on_node.clone().filter(|write| write.code == 422).count();
    println!(
        "{} toggles, {} writes, {conflicts} of them conflicts",
        toggled.load(Ordering::Relaxed),
        on_node.count(),
    );
    never("a conflict without a competitor", A_WHILE, async || {
        let now = writes(cluster, "contended")?;
        Ok(now[after.len()..]
            .iter()
            .any(|write| write.resource == "nodes"))
    })
    .await
}

const COMPETITOR: &str = "example.com/competitor";

fn taints_of(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten())
}

/// Adds or removes the competitor's taint, by replacing the whole list as just read. Returns false if the node had changed
/// since.
async fn toggle(client: &Client, name: &str) -> Result<bool> {
    let node = sights::node(client, name).await?;
    let mut taints: Vec<Taint> = taints_of(&node).cloned().collect();
    let before = taints.len();
    taints.retain(|taint| taint.key != COMPETITOR);
    if taints.len() == before {
        taints.push(Taint {
            key: COMPETITOR.to_owned(),
            effect: "NoExecute".to_owned(),
            ..Taint::default()
        });
    }
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": node.resource_version()},
        "spec": {"taints": taints},
    }));
    let nodes: Api<Node> = Api::all(client.clone());
    match nodes.patch(name, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens and closes the node this many times.
async fn flip(client: &Client, name: &str, times: usize) -> Result<()> {
    for _ in 0..times {
        set_node_condition(client, name, READY, "True").await?;
        eventually_open(client, name, name).await?;
        set_node_condition(client, name, READY, "False").await?;
        eventually_gated(client, name, name).await?;
    }
    Ok(())
}

/// Fault 247.
#[tokio::test]
async fn a_rule_created_again_under_its_name_starts_anew() -> Result<()> {
    let client = client().await?;
    let old = completion_by("anew");
    node("anew", "anew-old")
        .annotation(&old, "true")
        .create(&client)
        .await?;
    node("anew", "anew").create(&client).await?;
    let first = bootstrap("anew").create(&client).await?;
    eventually_gated(&client, "anew", "anew").await?;
    set_node_condition(&client, "anew", READY, "True").await?;
    eventually_open(&client, "anew", "anew").await?;
    set_node_condition(&client, "anew", READY, "False").await?;
    stays_open(&client, "anew-old", "anew").await?;
    rule::delete(&client, "anew").await?;

    let second = bootstrap("anew").create(&client).await?;
    assert_ne!(first.uid(), second.uid());
    for name in ["anew", "anew-old"] {
        eventually_gated(&client, name, "anew").await?;
    }
    rule::eventually_counts(&client, "anew", [2, 2, 0]).await
}

/// Fault 111.
#[tokio::test]
async fn a_rule_stays_small_however_many_nodes_it_has() -> Result<()> {
    const NODES: u64 = 150;
    const HELD: u64 = 15;
    let client = client().await?;
    let kinds = [
        "example.com/NetworkReady",
        "example.com/StorageReady",
        "example.com/GpuReady",
    ];
    let rule = continuous("many").with(&json!({
        "conditions": kinds.map(|kind| json!({"type": kind, "requiredStatus": "True"})),
    }));
    rule.create(&client).await?;
    let name = |number| format!("many-{number:03}.worker.a-zone.a-region.cluster.example.com");
    for number in 0..NODES {
        // The held ones come last by name.
        let is_held = number >= NODES - HELD;
        let open = if is_held { &kinds[1..] } else { &kinds };
        let node = open.iter().fold(node("many", &name(number)), |node, kind| {
            node.condition(kind, "True")
        });
        node.create(&client).await?;
    }
    rule::eventually_counts(&client, "many", [NODES, HELD, NODES - HELD]).await?;
    for number in NODES - HELD..NODES {
        eventually_gated(&client, &name(number), "many").await?;
    }
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let rule = rule::rules(&client).get("many").await?;
    let size = serde_json::to_string(&rule)?.len();
    assert!(size < 64 * 1024, "{size} bytes");
    let listed = rule.data["status"]["nodeEvaluations"].as_array();
    let listed = listed.map(Vec::as_slice).unwrap_or_default();
    assert!((20..=100).contains(&listed.len()), "{} nodes", listed.len());
    let held = usize::try_from(HELD)?;
    for (place, listed) in listed.iter().enumerate() {
        let expected = if place < held { "Present" } else { "Absent" };
        assert_eq!(listed["taintStatus"], expected, "place {place}: {listed}");
    }
    println!("{size} bytes, {} of {NODES} nodes listed", listed.len());
    for number in 0..NODES {
        delete_node(&client, &name(number)).await?;
    }
    rule::eventually_counts(&client, "many", [0, 0, 0]).await
}

/// Faults 235, 342 and 347.
#[tokio::test]
async fn a_node_whose_labels_change_loses_what_no_rule_asks_for_any_more() -> Result<()> {
    let client = client().await?;
    for pool in ["cpu", "gpu"] {
        let rule = continuous(&format!("pool-{pool}"));
        rule.create(&client).await?;
    }
    node("pool-cpu", "moves").create(&client).await?;
    eventually_gated(&client, "moves", "pool-cpu").await?;
    for (from, to) in [("cpu", "gpu"), ("gpu", "cpu"), ("cpu", "gpu")] {
        let (from, to) = (format!("pool-{from}"), format!("pool-{to}"));
        patch_node(
            &client,
            "moves",
            &json!({"metadata": {"labels": {"test": to}}}),
        )
        .await?;
        eventually_gated(&client, "moves", &to).await?;
        eventually_open(&client, "moves", &from).await?;
        rule::eventually_counts(&client, &from, [0, 0, 0]).await?;
    }
    // A rule that is deleted while its node leaves it leaves nothing behind either.
    patch_node(
        &client,
        "moves",
        &json!({"metadata": {"labels": {"test": null}}}),
    )
    .await?;
    rule::delete(&client, "pool-gpu").await?;
    assert!(!is_gated(&client, "moves", "pool-gpu").await?);
    Ok(())
}
