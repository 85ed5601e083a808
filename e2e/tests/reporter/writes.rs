//! What the reporter writes, and what it does not.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testkit::nodegate::changes::patch_node_status;
use testkit::nodegate::state::node as read_node;
use testkit::nodegate::{Cluster, Options, eventually, never};

use crate::endpoints::{Answer, Server, status};
use crate::process::has_checked;
use crate::{NO_ANSWER, NOT_READY, OK, SOON, World, install};

#[tokio::test]
async fn an_unchanged_condition_is_not_written_again() -> Result<()> {
    let world = World::new("unchanged").await?;
    let server = Server::http(status("200 OK")).await?;
    let reporter = world.report(&server.url("/"), &[])?;
    world.reports(OK).await?;
    let before = read_node(&world.client, &world.node).await?.metadata;
    has_checked(&reporter).await?;
    let after = read_node(&world.client, &world.node).await?.metadata;
    assert_eq!(before.resource_version, after.resource_version);
    // One read at the start, one write, and no read before it.
    let requests: Vec<_> = world.requests();
    let requests: Vec<_> = requests
        .iter()
        .map(|(verb, resource, code)| (verb.as_str(), resource.as_str(), *code))
        .collect();
    assert_eq!(
        requests,
        [("get", "nodes/", 200), ("patch", "nodes/status", 200)]
    );
    #[rustfmt::skip]
    let metrics = [
        (r#"condition_writes_total{result="success"}"#, 1.0),
        (r#"condition_writes_total{result="error"}"#, 0.0),
        (r#"checks_total{result="unhealthy"}"#, 0.0),
        (r#"condition_status{status="True",type="network.k8s.io/CalicoReady"}"#, 1.0),
        (r#"condition_status{status="False",type="network.k8s.io/CalicoReady"}"#, 0.0),
    ];
    for (metric, expected) in metrics {
        let value = format!("node_readiness_reporter_{metric}");
        let value = reporter.metric(&value).await?;
        ensure!((value - expected).abs() < f64::EPSILON, "{metric}: {value}");
    }
    let skipped = reporter
        .metric(r#"node_readiness_reporter_condition_writes_total{result="skipped"}"#)
        .await?;
    ensure!(skipped >= 9.0, "{skipped} skipped");
    Ok(())
}

#[tokio::test]
async fn a_restart_writes_once_and_carries_on_within_a_boot() -> Result<()> {
    let this_boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let world = World::new("boots").await?;
    let boot = async |id: &str| {
        let patch = json!({"status": {"nodeInfo": {"bootID": id}}});
        patch_node_status(&world.client, &world.node, &patch).await
    };
    let server = Server::http(status("200 OK")).await?;
    let patient = [("FAILURE_THRESHOLD", "1000")];
    boot(this_boot.trim()).await?;
    let mut reporter = world.report(&server.url("/"), &patient)?;
    let first = world.reports(OK).await?;
    let mut restart = async || {
        drop(std::mem::replace(
            &mut reporter,
            world.report(&server.url("/"), &patient)?,
        ));
        anyhow::Ok(())
    };

    let writes = world.writes();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    restart().await?;
    eventually("it writes", SOON, async || Ok(world.writes() > writes)).await?;
    let second = world.reports(OK).await?;
    ensure!(second.last_heartbeat_time > first.last_heartbeat_time);
    assert_eq!(second.last_transition_time, first.last_transition_time);
    server.set(status("503 Service Unavailable"));
    restart().await?;
    never(
        "one bad check is enough",
        Duration::from_secs(2),
        async || {
            let condition = world.condition().await?.context("no condition")?;
            Ok(condition.status != "True")
        },
    )
    .await?;
    assert_eq!(world.writes(), writes + 1, "it was said again unchecked");

    boot("another").await?;
    restart().await?;
    world.reports(NOT_READY).await?;
    Ok(())
}

#[tokio::test]
async fn after_an_outage_of_the_api_server_the_latest_state_is_reported_at_once() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    install(&cluster).await?;
    let world = World::on(&cluster, "outage").await?;
    let server = Server::http(status("200 OK")).await?;
    let mut reporter = world.report(&server.url("/"), &[])?;
    world.reports(OK).await?;

    cluster.stop_api_server();
    server.set(status("500 Internal Server Error"));
    reporter
        .says("cannot write the status of Node outage", SOON)
        .await?;
    assert_eq!(
        reporter.get("/readyz").await?.0,
        200,
        "an outage makes no pod unready"
    );
    assert_eq!(reporter.get("/healthz").await?.0, 200);
    server.set(Answer::Nothing);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let writes = world.writes();
    cluster.start_api_server().await?;
    world.reports(NO_ANSWER).await?;
    reporter
        .says("the API server accepts reports again", SOON)
        .await?;
    assert_eq!(world.writes(), writes + 1, "an older state was written too");
    never("it goes back", Duration::from_secs(1), async || {
        let condition = world.condition().await?.context("no condition")?;
        Ok(condition.reason.as_deref() != Some("EndpointConnectionError"))
    })
    .await?;
    ensure!(reporter.exited()?.is_none());
    // The problem is logged once, not with each retry.
    let told = reporter.log().matches("trying again").count();
    ensure!(told <= 3, "{}", reporter.log());
    Ok(())
}
