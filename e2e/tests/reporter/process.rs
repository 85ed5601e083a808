//! How the process starts and ends, and whose identity it uses.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use nodegate_tests::reporter::{NAMESPACE, SERVICE_ACCOUNT, token_on};
use testkit::nodegate::install::program;
use testkit::nodegate::{Reporter, eventually, never};

use crate::endpoints::{Answer, Server, script, status};
use crate::{NOT_READY, OK, SOON, World};

/// The limit of a reporter's own memory, in KiB: less than the output of the command below. The program's pages do not count,
/// as a debug build has far more of them than a release.
const MEMORY: u64 = 8 * 1024;

#[tokio::test]
async fn it_stops_cleanly_and_leaves_the_condition() -> Result<()> {
    let world = World::new("stop").await?;
    let server = Server::http(status("200 OK")).await?;
    let reporter = world.report(&server.url("/"), &[])?;
    world.reports(OK).await?;
    let ended = reporter.stop().await?;
    ensure!(ended.success(), "it ended with {ended}");
    world.reports(OK).await?;

    // Also during a check.
    server.set(Answer::Silence);
    let reporter = world.report(&server.url("/"), &[("CHECK_TIMEOUT", "1h")])?;
    reporter.says("starting", SOON).await?;
    let ended = reporter.stop().await?;
    ensure!(ended.success(), "it ended with {ended}");
    Ok(())
}

/// Without a command, the image starts the controller.
#[test]
fn an_endpoint_to_check_makes_a_reporter_of_a_container_without_a_command() -> Result<()> {
    let mut started = Command::new(program("nodegate-controller")?);
    started.env("CHECK_ENDPOINT", "tcp://localhost:1");
    let output = started.arg("--version").output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(said.starts_with("nodegate-reporter "), "{output:?}");
    Ok(())
}

#[tokio::test]
async fn it_can_end_with_the_first_success() -> Result<()> {
    let world = World::new("once").await?;
    let server = Server::http(status("500 Internal Server Error")).await?;
    let once = [("REPORT_ONCE", "true")];
    let mut reporter = world.report(&server.url("/"), &once)?;
    world.reports(NOT_READY).await?;
    never("it ends before that", Duration::from_secs(1), async || {
        Ok(reporter.exited()?.is_some())
    })
    .await?;
    // Stopped too early, it has not done its work.
    let ended = reporter.stop().await?;
    assert_eq!(ended.code(), Some(1));
    let mut reporter = world.report(&server.url("/"), &once)?;
    server.set(status("200 OK"));
    let ended = eventually("it ends", SOON, async || reporter.exited()).await?;
    ensure!(ended.success(), "it ended with {ended}");
    world.reports(OK).await?;
    let writes = world.writes();
    // If the condition exists already, a check must confirm it, and it is written once.
    let mut reporter = world.report(&server.url("/"), &once)?;
    let ended = eventually("it ends", SOON, async || reporter.exited()).await?;
    ensure!(ended.success(), "it ended with {ended}");
    assert_eq!(world.writes(), writes + 1);
    Ok(())
}

#[tokio::test]
async fn it_can_act_as_the_node_it_runs_on_and_as_no_other() -> Result<()> {
    let world = World::new("impersonated").await?;
    if !world.can_impersonate().await? {
        return Ok(());
    }
    let other = World::new("impersonated-other").await?;
    let role = "nrr-reporter-impersonation-role";
    let token = world
        .token_in("nrr-impersonation", SERVICE_ACCOUNT, role)
        .await?;
    let server = Server::http(status("200 OK")).await?;
    let start = |node: &str, impersonate: &str| {
        let variables = [("NODE_NAME", node), ("IMPERSONATE_NODE", impersonate)];
        world.report_as(&token, &server.url("/"), &variables)
    };
    let reporter = start(&world.node, "true")?;
    world.reports(OK).await?;
    drop(reporter);
    // It may do nothing, neither as itself nor as another node.
    for (node, impersonate, words) in [
        (&world.node, "false", "kubectl apply -k config/reporter"),
        (&other.node, "true", "impersonate"),
    ] {
        let reporter = start(node, impersonate)?;
        let refused = format!("cannot write the status of Node {node}");
        reporter.says(&refused, SOON).await?;
        reporter.says(words, SOON).await?;
    }
    ensure!(other.condition().await?.is_none());
    Ok(())
}

#[tokio::test]
async fn without_permission_it_says_which_and_goes_on_once_it_is_granted() -> Result<()> {
    let world = World::new("forbidden").await?;
    let account = "forbidden-cni";
    let cluster = world.cluster;
    let create = format!("create serviceaccount {account} -n {NAMESPACE}");
    cluster.types(&create).await?;
    let token = cluster
        .kubeconfig_for_service_account(NAMESPACE, account)
        .await?;
    let server = Server::http(status("200 OK")).await?;
    let reporter = world.report_as(&token, &server.url("/"), &[])?;
    reporter
        .says("cannot write the status of Node forbidden", SOON)
        .await?;
    reporter
        .says("kubectl apply -k config/reporter", SOON)
        .await?;
    let bind = format!(
        "create clusterrolebinding {account} --clusterrole=nrr-reporter-role --serviceaccount={NAMESPACE}:{account}"
    );
    cluster.types(&bind).await?;
    world.reports(OK).await?;
    Ok(())
}

#[tokio::test]
async fn a_node_that_does_not_exist_is_waited_for_with_the_remedy_in_the_log() -> Result<()> {
    let known = World::new("known").await?;
    let world = World {
        cluster: known.cluster,
        kubeconfig: token_on(known.cluster, &known.client, "unknown").await?,
        client: known.client,
        node: "unknown".to_owned(),
    };
    let server = Server::http(status("200 OK")).await?;
    let reporter = world.report(&server.url("/"), &[])?;
    reporter.says("cannot read Node unknown", SOON).await?;
    let remedy = "is NODE_NAME right? Take it from the downward API: spec.nodeName";
    reporter.says(remedy, SOON).await?;
    let (code, why) = reporter.get("/readyz").await?;
    ensure!(
        code == 503 && why.contains("is NODE_NAME right?"),
        "{code} {why}"
    );
    assert_eq!(reporter.get("/healthz").await?.0, 200);
    let errors = r#"node_readiness_reporter_condition_writes_total{result="error"}"#;
    let errors = reporter.metric(errors).await?;
    ensure!(errors >= 1.0, "{errors} errors");
    // A static pod runs before its node is registered.
    testkit::nodegate::fixtures::node("unknown")
        .create(&world.client)
        .await?;
    eventually("it reports", SOON, async || {
        Ok(reporter.get("/readyz").await?.0 == 200)
    })
    .await
}

#[tokio::test]
async fn an_address_that_is_taken_costs_the_metrics_and_not_the_report() -> Result<()> {
    let world = World::new("taken").await?;
    let server = Server::http(status("200 OK")).await?;
    let taken = server.address.to_string();
    let reporter = world.report(&server.url("/"), &[("METRICS_BIND_ADDRESS", &taken)])?;
    world.reports(OK).await?;
    reporter
        .says("going on without metrics and probes", SOON)
        .await?;
    reporter
        .says("choose another METRICS_BIND_ADDRESS", SOON)
        .await?;
    Ok(())
}

/// Waits until there have been a few checks.
pub(crate) async fn has_checked(reporter: &Reporter) -> Result<()> {
    eventually("there have been a few checks", SOON, async || {
        let checks = r#"node_readiness_reporter_checks_total{result="healthy"}"#;
        Ok(reporter.metric(checks).await? > 10.0)
    })
    .await
}

#[tokio::test]
async fn what_a_check_leaves_running_is_ended_and_collected() -> Result<()> {
    let world = World::new("orphans").await?;
    // The shell ends, and its child loses its parent.
    let path = script(world.cluster.folder(), "orphans", "sleep 600 & exit 0")?;
    let endpoint = format!("exec:{}", path.display());
    let reporter = world.report(&endpoint, &[("PATH", "/usr/bin:/bin")])?;
    world.reports(OK).await?;
    has_checked(&reporter).await?;
    let children = children(reporter.pid())?;
    // The latest check's may still be ending.
    ensure!(children.len() <= 3, "{children:#?}");
    Ok(())
}

/// The states of a process's children, from /proc/PID/stat.
fn children(of: u32) -> Result<Vec<String>> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        // A process may end at any moment.
        let stat = std::fs::read_to_string(entry?.path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1));
        if parent == Some(&of.to_string()) {
            children.push(stat);
        }
    }
    Ok(children)
}

#[tokio::test]
async fn it_stays_small() -> Result<()> {
    let world = World::new("small").await?;
    let path = script(world.cluster.folder(), "small", "yes | head -c 10000000")?;
    let endpoint = format!("exec:{}", path.display());
    let reporter = world.report(&endpoint, &[("PATH", "/usr/bin:/bin")])?;
    world.reports(OK).await?;
    has_checked(&reporter).await?;
    let taken = reporter.memory("RssAnon")?;
    ensure!(taken < MEMORY, "{taken} KiB");
    Ok(())
}
