//! Policies without parameters, as `kubectl nodegate birth --static` writes them: for the rules of that moment they do what the
//! parameterized policy does.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicy;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use nodegate_suite::SOON;
use nodegate_testbed::ask::ask;
use nodegate_testbed::fixtures::{NodeBuilder, node, rule, rules};
use nodegate_testbed::install::config;
use nodegate_testbed::{Cluster, Options, eventually, eventually_eq};
use serde_json::json;

use crate::{CONDITION, all_are_known, client, in_force, install, key, keys, labelled, tried};

/// Names that end so are for the API server's files alone.
const SUFFIX: &str = ".static.k8s.io";

/// What the policies make of a node: its taints, and its annotations.
type Made = (Vec<Taint>, BTreeMap<String, String>);

/// The nodes that are tried, as they are sent. The rule with this UID is `bootstrap-only`.
fn nodes(uid: &str) -> Vec<NodeBuilder> {
    let completed = |id: &str| format!("readiness.k8s.io/bootstrap-completed-{id}");
    let selected = |name: &str| labelled(name, "static");
    vec![
        selected("plain"),
        selected("gpu").label("pool", "gpu"),
        selected("gpu-b").label("pool", "gpu").label("zone", "b"),
        selected("tpu-old")
            .label("pool", "tpu")
            .label("deprecated", ""),
        selected("completed")
            .annotation(&completed(uid), "{}")
            .annotation(&completed("reboots"), "{}")
            .annotation("example.com/own", "stays"),
        selected("registered")
            .taint(&key("continuous"), "NoSchedule")
            .taint("example.com/own", "NoExecute"),
        labelled("elsewhere", "elsewhere"),
        node("without-labels"),
    ]
}

/// What the policies make of all of them.
async fn made(client: &Client, uid: &str) -> Result<Vec<Made>> {
    let mut all = Vec::new();
    for node in nodes(uid) {
        let node: Node = tried(client, node).await?;
        let annotations = node.annotations().clone();
        let mut taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        taints.sort_by(|a, b| (&a.key, &a.effect).cmp(&(&b.key, &b.effect)));
        all.push((taints, annotations));
    }
    Ok(all)
}

/// Creates rules of each kind that the policy tells apart; returns the UID of a `bootstrap-only` one.
async fn create_rules(client: &Client) -> Result<String> {
    let selects = |name: &str| in_force(name, "static");
    let expressions = json!([
        {"key": "test", "operator": "In", "values": ["other", "static"]},
        {"key": "pool", "operator": "Exists"},
        {"key": "zone", "operator": "NotIn", "values": ["b"]},
        {"key": "deprecated", "operator": "DoesNotExist"},
    ]);
    for rule in [
        selects("continuous"),
        selects("once").bootstrap_only().spec(
            "taint",
            json!({"key": key("once"), "value": "pending", "effect": "NoExecute"}),
        ),
        selects("reboots")
            .bootstrap_only()
            .spec("regateOn", json!(["Reboot"])),
        selects("expressions").spec("nodeSelector", json!({"matchExpressions": expressions})),
        selects("dry").dry_run(),
        selects("suspended").spec("suspend", json!(true)),
        selects("lifting").spec("taintPolicy", json!("remove-only")),
        rule("new", &key("new"))
            .waits_for(CONDITION)
            .selects("test", "static"),
        in_force("elsewhere", "elsewhere"),
    ] {
        rule.create(client).await?;
    }
    all_are_known(client, "static").await?;
    let once = rules(client).get("once").await?;
    Ok(once.uid().unwrap_or_default())
}

/// What `kubectl nodegate birth --static` writes.
async fn written(cluster: &Cluster) -> Result<String> {
    let said = ask(&cluster.kubeconfig(), &["birth", "--static"]).await?;
    ensure!(said.code == 0, "{said:?}");
    Ok(said.out)
}

#[tokio::test]
async fn a_policy_for_each_rule_does_what_the_parameterized_one_does() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    if !install(&cluster).await? {
        return Ok(());
    }
    let client = cluster.client().await?;
    let uid = create_rules(&client).await?;
    let by_parameters = made(&client, &uid).await?;
    ensure!(
        by_parameters.iter().any(|(taints, _)| taints.len() > 4),
        "{by_parameters:?}"
    );
    let written = written(&cluster).await?;
    for name in ["dry", "suspended", "lifting", "new"] {
        let line = format!("# rule/{name} is left out: ");
        ensure!(written.contains(&line), "{written}");
    }

    let birth = config("birth");
    cluster
        .kubectl(&["delete", "-k", &birth.to_string_lossy()])
        .await?;
    eventually("no policy is in force", SOON, async || {
        let node = tried(&client, labelled("plain", "static")).await?;
        Ok(keys(&node).is_empty())
    })
    .await?;
    // As ordinary objects, they have other names.
    cluster.apply(&written.replace(SUFFIX, "")).await?;
    let what = "the policies do the same without parameters";
    eventually_eq(what, SOON, by_parameters, async || {
        made(&client, &uid).await
    })
    .await
}

#[tokio::test]
async fn an_api_server_reads_them_from_its_own_files() -> Result<()> {
    if client().await?.is_none() {
        return Ok(());
    }
    let options = Options {
        static_policies: true,
        ..Options::api_only()
    };
    let cluster = Cluster::start(options).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    for name in ["first", "second"] {
        in_force(name, "static").create(&client).await?;
    }
    let file = cluster.static_policies().join("nodegate.yaml");
    std::fs::write(file, written(&cluster).await?)?;
    cluster.restart_api_server().await?;
    eventually("a node is closed at birth", SOON, async || {
        let node = tried(&client, labelled("plain", "static")).await?;
        Ok(keys(&node).len() == 2)
    })
    .await?;
    let policies: Api<MutatingAdmissionPolicy> = Api::all(client);
    let seen = policies.list(&ListParams::default()).await?;
    ensure!(seen.items.is_empty(), "the API shows them: {seen:?}");
    Ok(())
}
