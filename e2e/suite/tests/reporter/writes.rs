//! What the reporter writes, and what it does not.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nodegate_testbed::changes::patch_node_status;
use nodegate_testbed::sights::node as read_node;
use nodegate_testbed::{Cluster, Options, eventually, never};
use serde_json::json;

use crate::endpoints::{Answer, Server, status};
use crate::{CONDITION, World, install, says};

#[tokio::test]
async fn an_unchanged_condition_is_not_written_again() -> Result<()> {
    let world = World::new("unchanged").await?;
    let server = Server::http(status("200 OK")).await?;
    let reporter = world.report(&server.url("/"), &[])?;
    world.reports("True", "EndpointOK").await?;
    let before = read_node(&world.client, &world.node).await?.metadata;
    eventually("there have been more checks", crate::SOON, async || {
        let checks = reporter
            .metric(r#"node_readiness_reporter_checks_total{result="healthy"}"#)
            .await?;
        Ok(checks > 10.0)
    })
    .await?;
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
    for (metric, expected) in [
        (r#"condition_writes_total{result="success"}"#, 1.0),
        (r#"condition_writes_total{result="error"}"#, 0.0),
        (r#"checks_total{result="unhealthy"}"#, 0.0),
        (
            r#"condition_status{status="True",type="cni.example.com/AgentReady"}"#,
            1.0,
        ),
        (
            r#"condition_status{status="False",type="cni.example.com/AgentReady"}"#,
            0.0,
        ),
    ] {
        let value = reporter
            .metric(&format!("node_readiness_reporter_{metric}"))
            .await?;
        ensure!((value - expected).abs() < f64::EPSILON, "{metric}: {value}");
    }
    let skipped = reporter
        .metric(r#"node_readiness_reporter_condition_writes_total{result="skipped"}"#)
        .await?;
    ensure!(skipped >= 9.0, "{skipped} skipped");
    Ok(())
}

#[tokio::test]
async fn at_the_heartbeat_only_the_heartbeat_moves() -> Result<()> {
    let world = World::new("heartbeat").await?;
    let server = Server::http(status("200 OK")).await?;
    let beating = [("HEARTBEAT_PERIOD", "2s")];
    let reporter = world.report(&server.url("/"), &beating)?;
    let first = world.reports("True", "EndpointOK").await?;
    eventually("it beats", crate::SOON, async || {
        let condition = world.condition().await?.context("no condition")?;
        Ok(condition.last_heartbeat_time > first.last_heartbeat_time)
    })
    .await?;
    let last = world.condition().await?.context("no condition")?;
    assert_eq!(last.last_transition_time, first.last_transition_time);
    assert_eq!(last.message, first.message);
    drop(reporter);
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
    let first = world.reports("True", "EndpointOK").await?;
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
    eventually("it writes", crate::SOON, async || {
        Ok(world.writes() > writes)
    })
    .await?;
    let second = world.reports("True", "EndpointOK").await?;
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
    world.reports("False", "EndpointNotReady").await?;
    Ok(())
}

#[tokio::test]
async fn a_node_that_is_registered_again_gets_its_condition_again_soon() -> Result<()> {
    let world = World::new("registered-again").await?;
    let server = Server::http(status("200 OK")).await?;
    let _reporter = world.report(&server.url("/"), &[("HEARTBEAT_PERIOD", "90s")])?;
    world.reports("True", "EndpointOK").await?;
    let node = format!("node/{}", world.node);
    world.cluster.kubectl(&["delete", &node]).await?;
    nodegate_testbed::fixtures::node(&world.node)
        .create(&world.client)
        .await?;
    ensure!(world.condition().await?.is_none());
    // A fifth of the heartbeat interval, which is a minute by default.
    let soon = Duration::from_secs(30);
    eventually("it is written again", soon, async || {
        Ok(world.condition().await?.is_some())
    })
    .await?;
    let reads = world.requests();
    let reads = reads.iter().filter(|(verb, ..)| verb == "get").count();
    ensure!(reads <= 4, "{reads} reads");
    Ok(())
}

#[tokio::test]
async fn only_a_change_of_status_moves_the_transition() -> Result<()> {
    let world = World::new("transition").await?;
    let server = Server::http(Answer::Nothing).await?;
    let reporter = world.report(&server.url("/"), &[])?;
    let first = world.reports("False", "EndpointConnectionError").await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    server.set(status("503 Service Unavailable"));
    let second = world.reports("False", "EndpointNotReady").await?;
    assert_eq!(second.last_transition_time, first.last_transition_time);
    server.set(status("200 OK"));
    let third = world.reports("True", "EndpointOK").await?;
    ensure!(third.last_transition_time > second.last_transition_time);
    // Other conditions belong to others.
    let conditions = read_node(&world.client, &world.node).await?.status;
    let conditions = conditions
        .unwrap_or_default()
        .conditions
        .unwrap_or_default();
    let types: Vec<_> = conditions
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect();
    assert_eq!(types, [CONDITION]);
    drop(reporter);
    Ok(())
}

#[tokio::test]
async fn thresholds_keep_the_condition_from_flapping() -> Result<()> {
    let world = World::new("thresholds").await?;
    let server = Server::http(status("200 OK")).await?;
    let thresholds = [
        ("SUCCESS_THRESHOLD", "3"),
        ("FAILURE_THRESHOLD", "1000"),
        ("CHECK_INTERVAL", "500ms"),
    ];
    let reporter = world.report(&server.url("/"), &thresholds)?;
    let checks = async |result: &str| {
        let name = format!("node_readiness_reporter_checks_total{{result=\"{result}\"}}");
        reporter.metric(&name).await
    };
    eventually("it has been checked", crate::SOON, async || {
        Ok(checks("healthy").await? >= 1.0)
    })
    .await?;
    world.reports("True", "EndpointOK").await?;
    ensure!(checks("healthy").await? >= 3.0, "one good check was enough");
    server.set(status("500 Internal Server Error"));
    eventually("it fails a few times", crate::SOON, async || {
        Ok(checks("unhealthy").await? >= 4.0)
    })
    .await?;
    world.reports("True", "EndpointOK").await?;
    assert_eq!(world.writes(), 1);
    Ok(())
}

#[tokio::test]
async fn after_an_outage_of_the_api_server_the_latest_state_is_reported_at_once() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    install(&cluster).await?;
    let world = World::on(&cluster, "outage").await?;
    let server = Server::http(status("200 OK")).await?;
    let mut reporter = world.report(&server.url("/"), &[])?;
    world.reports("True", "EndpointOK").await?;

    cluster.stop_api_server();
    server.set(status("500 Internal Server Error"));
    says(&reporter, "cannot write the status of Node outage").await?;
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
    world.reports("False", "EndpointConnectionError").await?;
    says(&reporter, "the API server takes reports again").await?;
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

#[tokio::test]
async fn a_reporter_that_starts_during_an_outage_reports_when_it_is_over() -> Result<()> {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start(Options::api_only()).await?));
    install(cluster).await?;
    let world = World::on(cluster, "early").await?;
    cluster.stop_api_server();
    let server = Server::http(status("200 OK")).await?;
    let reporter = world.report(&server.url("/"), &[])?;
    says(&reporter, "cannot read Node early").await?;
    let (code, why) = reporter.get("/readyz").await?;
    ensure!(
        code == 503 && why.contains("cannot read Node early"),
        "{code} {why}"
    );
    cluster.start_api_server().await?;
    world.reports("True", "EndpointOK").await?;
    Ok(())
}
