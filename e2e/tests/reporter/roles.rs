//! Under the roles of the Node Readiness Controller's examples, which do not grant all that the reporter asks for.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::state::node_condition;

use crate::endpoints::{Answer, Server, status};
use crate::{NO_ANSWER, OK, SOON, World};

const CONSTRAINED: &str = r#"
- {apiGroups: [authentication.k8s.io], resources: [nodes], verbs: ["impersonate:associated-node"]}
- {apiGroups: [""], resources: [nodes], verbs: ["impersonate-on:associated-node:get"]}
- {apiGroups: [""], resources: [nodes/status], verbs: ["impersonate-on:associated-node:update"]}"#;

const PLAIN: &str = r#"
- {apiGroups: [""], resources: [nodes], verbs: [get]}
- {apiGroups: [""], resources: [nodes/status], verbs: [update]}"#;

/// Of the walk-through with Calico.
const WRITES_ALONE: &str = r#"
- {apiGroups: [""], resources: [nodes/status], verbs: [patch, update]}"#;

/// The token of an account with these permissions on Nodes.
async fn token(world: &World<'_>, namespace: &str, rules: &str) -> Result<PathBuf> {
    let role = format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {namespace}}}
rules: {rules}
"
    );
    world.cluster.apply(&role).await?;
    world.token_in(namespace, "reporter", namespace).await
}

#[tokio::test]
async fn it_reports_as_the_node_where_it_may_only_update() -> Result<()> {
    let world = World::new("only-update").await?;
    if !world.can_impersonate().await? {
        return Ok(());
    }
    let token = token(&world, "nrr-only-update", CONSTRAINED).await?;
    let server = Server::http(status("200 OK")).await?;
    let as_the_node = [("IMPERSONATE_NODE", "true")];
    let reporter = world.report_as(&token, &server.url("/"), &as_the_node)?;
    world.reports(OK).await?;
    // Conditions that others report in the meantime stay.
    set_node_condition(&world.client, &world.node, "example.com/Other", "True").await?;
    server.set(Answer::Nothing);
    world.reports(NO_ANSWER).await?;
    let other = node_condition(&world.client, &world.node, "example.com/Other").await?;
    assert_eq!(other.context("the other condition is gone")?.status, "True");
    reporter
        .says("may not be patched, but updated", SOON)
        .await?;
    // A patch is tried once; after that each write is a read and an update.
    let requests = world.requests();
    let granted: Vec<_> = requests
        .iter()
        .filter(|(_, _, code)| *code == 200)
        .map(|(verb, resource, _)| format!("{verb} {resource}"))
        .collect();
    let update = ["get nodes/", "update nodes/status"];
    assert_eq!(granted, [&["get nodes/"][..], &update, &update].concat());
    let refused = requests.iter().filter(|(_, _, code)| *code == 403);
    let patches: Vec<_> = refused.filter(|(verb, ..)| verb == "patch").collect();
    ensure!(patches.len() == 1, "{requests:?}");
    Ok(())
}

#[tokio::test]
async fn updates_beside_others_lose_nobodys_condition() -> Result<()> {
    let world = World::new("crowded").await?;
    let token = token(&world, "nrr-crowded", PLAIN).await?;
    let server = Server::http(status("200 OK")).await?;
    let beating = [("HEARTBEAT_PERIOD", "1s")];
    let reporter = world.report_as(&token, &server.url("/"), &beating)?;
    world.reports(OK).await?;
    let writer = async {
        for number in 0..200 {
            let kind = format!("example.com/Other{}", number % 20);
            let status = if number % 40 < 20 { "True" } else { "False" };
            set_node_condition(&world.client, &world.node, &kind, status).await?;
        }
        anyhow::Ok(())
    };
    let turner = async {
        for answer in [Answer::Nothing, status("200 OK"), Answer::Nothing] {
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            server.set(answer);
        }
        anyhow::Ok(())
    };
    tokio::try_join!(writer, turner)?;
    world.reports(NO_ANSWER).await?;
    for number in 0..20 {
        let kind = format!("example.com/Other{number}");
        let condition = node_condition(&world.client, &world.node, &kind).await?;
        let condition = condition.with_context(|| format!("{kind} is gone"))?;
        assert_eq!(condition.status, "False", "{kind} is an older one");
    }
    drop(reporter);
    Ok(())
}

#[tokio::test]
async fn it_reports_where_it_may_only_write() -> Result<()> {
    let world = World::new("only-write").await?;
    let token = token(&world, "nrr-only-write", WRITES_ALONE).await?;
    let server = Server::http(status("200 OK")).await?;
    let reporter = world.report_as(&token, &server.url("/"), &[])?;
    world.reports(OK).await?;
    server.set(Answer::Nothing);
    world.reports(NO_ANSWER).await?;
    assert_eq!(reporter.log().matches("going on without").count(), 1);
    let requests = world.requests();
    let outcomes: Vec<_> = requests
        .iter()
        .map(|(verb, _, code)| format!("{verb} {code}"))
        .collect();
    assert_eq!(outcomes, ["get 403", "patch 200", "patch 200"]);
    Ok(())
}
