//! How the controller treats nodes that are closed at creation, and what happens to them while it does not run.

use anyhow::{Result, ensure};
use kube::{Client, ResourceExt};
use nodegate_suite::gates::{eventually_gated, eventually_open};
use nodegate_suite::network::OWNER;
use nodegate_suite::{A_WHILE, PROMPTLY, SOON};
use nodegate_testbed::audit::Write;
use nodegate_testbed::changes::{delete_rule, set_node_condition};
use nodegate_testbed::fixtures::{NodeBuilder, node, rule, rules};
use nodegate_testbed::sights::{count_taints, events_on, node as read_node};
use nodegate_testbed::{Cluster, Controller, Options, eventually, eventually_eq, never};

use crate::{CONDITION, has_policies, install, key, keys, tried};

/// A cluster with both kinds of rules, accepted by the controller, and the policy; `None` if the API server does not support
/// such policies.
async fn start() -> Result<Option<(Cluster, Controller, Client)>> {
    start_with(&[]).await
}

/// The same, with these arguments of the controller.
async fn start_with(arguments: &[&str]) -> Result<Option<(Cluster, Controller, Client)>> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    if !install(&cluster).await? {
        return Ok(None);
    }
    let client = cluster.client().await?;
    let controller = Controller::start(&cluster, arguments).await?;
    for name in ["always", "once"] {
        let rule = rule(name, &key(name))
            .waits_for(CONDITION)
            .selects("born", "yes");
        let rule = if name == "once" {
            rule.bootstrap_only()
        } else {
            rule
        };
        rule.create(&client).await?;
    }
    eventually("the API server knows the rules", SOON, async || {
        Ok(keys(&tried(&client, born("nobody")).await?).len() == 2)
    })
    .await?;
    Ok(Some((cluster, controller, client)))
}

fn born(name: &str) -> NodeBuilder {
    node(name).label("born", "yes")
}

/// How often the controller has written the node itself.
fn writes(cluster: &Cluster, name: &str) -> usize {
    let writes = cluster.controllers_writes();
    let is_of_the_node = |write: &&Write| write.resource == "nodes" && write.name == name;
    writes.iter().filter(is_of_the_node).count()
}

/// The reasons of the events about the node's taints, oldest first.
async fn told(client: &Client, name: &str) -> Result<Vec<String>> {
    let events = events_on(client, name).await?.into_iter();
    let reasons = events.filter_map(|event| event.reason);
    let mut reasons: Vec<_> = reasons
        .filter(|reason| reason.starts_with("Taint"))
        .collect();
    reasons.sort();
    Ok(reasons)
}

#[tokio::test]
async fn a_node_that_is_closed_at_birth_is_written_once_to_open_it() -> Result<()> {
    let Some((cluster, _controller, client)) = start().await? else {
        return Ok(());
    };
    born("watched").create(&client).await?;
    eventually_eq(
        "both are told of",
        SOON,
        vec!["TaintAdded".to_owned(); 2],
        async || told(&client, "watched").await,
    )
    .await?;
    // Longer than adopting a taint takes.
    never("it is written", 2 * A_WHILE, async || {
        Ok(writes(&cluster, "watched") > 0)
    })
    .await?;
    set_node_condition(&client, "watched", CONDITION, "True").await?;
    for name in ["always", "once"] {
        eventually_open(&client, "watched", &key(name)).await?;
    }
    let opened = read_node(&client, "watched").await?;
    ensure!(
        opened
            .annotations()
            .keys()
            .all(|key| !key.starts_with(OWNER)),
        "{opened:?}"
    );
    let is_completed = |key: &String| key.starts_with("readiness.k8s.io/bootstrap-completed-");
    ensure!(opened.annotations().keys().any(is_completed), "{opened:?}");
    eventually_eq("one write", PROMPTLY, 1, async || {
        Ok(writes(&cluster, "watched"))
    })
    .await?;
    // The continuous rule distinguishes a node that has been open from one that is still joining.
    set_node_condition(&client, "watched", CONDITION, "False").await?;
    eventually_gated(&client, "watched", &key("always")).await?;
    let again = read_node(&client, "watched").await?;
    ensure!(count_taints(&again, &key("once")) == 0, "{again:?}");
    let joining = again
        .annotations()
        .values()
        .any(|value| value.contains("joining"));
    ensure!(!joining, "{again:?}");
    Ok(())
}

#[tokio::test]
async fn a_node_is_closed_while_the_controller_does_not_run_and_opened_once_it_does() -> Result<()>
{
    let Some((cluster, controller, client)) = start().await? else {
        return Ok(());
    };
    controller.stop().await?;
    for name in ["ready", "unready"] {
        let status = if name == "ready" { "True" } else { "False" };
        let node = born(name)
            .condition(CONDITION, status)
            .create(&client)
            .await?;
        ensure!(keys(&node).len() == 2, "{node:?}");
    }
    let _controller = Controller::start(&cluster, &[]).await?;
    for rule in ["always", "once"] {
        eventually_open(&client, "ready", &key(rule)).await?;
    }
    never("the other one is written", 2 * A_WHILE, async || {
        Ok(writes(&cluster, "unready") > 0)
    })
    .await?;
    let unready = read_node(&client, "unready").await?;
    for rule in ["always", "once"] {
        ensure!(count_taints(&unready, &key(rule)) == 1, "{unready:?}");
    }
    eventually_eq("one write opened it", PROMPTLY, 1, async || {
        Ok(writes(&cluster, "ready"))
    })
    .await?;
    let adopted = told(&client, "unready").await?;
    ensure!(adopted.is_empty(), "nothing has happened: {adopted:?}");
    set_node_condition(&client, "unready", CONDITION, "True").await?;
    for rule in ["always", "once"] {
        eventually_open(&client, "unready", &key(rule)).await?;
    }
    eventually_eq("one write opened it", PROMPTLY, 1, async || {
        Ok(writes(&cluster, "unready"))
    })
    .await
}

#[tokio::test]
async fn a_rule_that_is_deleted_opens_nodes_that_were_closed_at_birth() -> Result<()> {
    let Some((_cluster, _controller, client)) = start().await? else {
        return Ok(());
    };
    born("left").create(&client).await?;
    for name in ["always", "once"] {
        delete_rule(&client, name).await?;
        eventually_open(&client, "left", &key(name)).await?;
    }
    let left = read_node(&client, "left").await?;
    ensure!(
        left.annotations().keys().all(|key| !key.starts_with(OWNER)),
        "{left:?}"
    );
    for name in ["always", "once"] {
        eventually("the rule is gone", SOON, async || {
            Ok(rules(&client).get_opt(name).await?.is_none())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn no_node_is_closed_at_birth_while_all_rules_are_suspended() -> Result<()> {
    let Some((cluster, _controller, client)) = start_with(&["--leader-elect"]).await? else {
        return Ok(());
    };
    for (annotation, closed) in [
        ("nodegate.dev/suspend-all=true", 0),
        ("nodegate.dev/suspend-all-", 2),
    ] {
        let lease = "lease/ba65f13e.readiness.node.x-k8s.io";
        let annotate = [
            "annotate",
            "--namespace=nrr-system",
            "--overwrite",
            lease,
            annotation,
        ];
        cluster.kubectl(&annotate).await?;
        eventually_eq(annotation, SOON, closed, async || {
            Ok(keys(&tried(&client, born("nobody")).await?).len())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_api_server_without_such_policies_is_told_of_and_the_controller_closes_nodes()
-> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    if has_policies(&client).await? {
        return Ok(());
    }
    let controller = Controller::start(&cluster, &[]).await?;
    let why = "the API server has no MutatingAdmissionPolicy (Kubernetes 1.36)";
    eventually("the log says so", SOON, async || {
        Ok(controller.log().contains(why))
    })
    .await?;
    let rule = rule("always", &key("always")).waits_for(CONDITION);
    rule.selects("born", "yes").create(&client).await?;
    let node = born("unready").condition(CONDITION, "False");
    let node = node.create(&client).await?;
    ensure!(keys(&node).is_empty(), "{node:?}");
    eventually_gated(&client, "unready", &key("always")).await
}
