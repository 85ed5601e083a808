//! Back to the real Node Readiness Controller, which is built of its source: what `check --upstream` finds gates nodes there, and what
//! follows its advice does not.

use std::env;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nodegate_tests::gates::{eventually_gated, stays_released};
use nodegate_tests::{SOON, fixture};
use serde_json::json;
use testkit::kubernetes::ports;
use testkit::kubernetes::process::Process;
use testkit::nodegate::ask::ask;
use testkit::nodegate::changes::patch_rule;
use testkit::nodegate::fixtures::{node, rule};
use testkit::nodegate::state::rule_status;
use testkit::nodegate::{Cluster, Controller, Options, eventually_eq};

const GPU: &str = "readiness.k8s.io/gpu";
const NETWORK: &str = "readiness.k8s.io/network";

#[tokio::test]
#[ignore = "needs the other project's source: make test-upstream UPSTREAM=folder"]
async fn what_check_finds_gates_nodes_there_and_a_dry_run_does_not() -> Result<()> {
    let binary = env::var_os("UPSTREAM_CONTROLLER").context("make test-upstream sets it")?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    let nodes = ["a", "b", "c", "d", "e", "f"];
    for name in nodes {
        let met = node(name).condition("example.com/NetworkReady", "True");
        met.create(&client).await?;
    }
    let controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    let gpu = rule("gpu", GPU).bootstrap_only();
    let gpu = gpu.waits_for("resource.nodegate.dev/nvidia.com/gpu");
    gpu.nodegate("existingNodes", json!("Leave"))
        .create(&client)
        .await?;
    let network = rule("network", NETWORK).waits_for("example.com/NetworkReady");
    network.create(&client).await?;
    for name in ["gpu", "network"] {
        eventually_eq("nodes left alone", SOON, json!([6, 0]), async || {
            let counts = &rule_status(&client, name).await?["nodegate"];
            Ok(json!([counts["matchedNodes"], counts["heldNodes"]]))
        })
        .await?;
    }
    let kubeconfig = cluster.kubeconfig();
    let found = async || {
        let said = ask(&kubeconfig, &["check", "--upstream"]).await?;
        ensure!(!said.out.contains("NG023  rule/network"), "{said:?}");
        anyhow::Ok(said.out.contains("error NG023  rule/gpu"))
    };
    ensure!(found().await?, "it is not found");
    let dry_run = |is_dry: bool| json!({"spec": {"dryRun": is_dry}});
    patch_rule(&client, "gpu", &dry_run(true)).await?;
    ensure!(!found().await?, "a dry run changes nothing there");
    ensure!(controller.stop().await?.success(), "it did not end well");

    cluster.apply_over(&fixture("upstream-crd.yaml")).await?;
    let probes = format!("127.0.0.1:{}", ports::free()?);
    let mut command = Command::new(binary);
    command.args(["--health-probe-bind-address", &probes]);
    command.env("KUBECONFIG", &kubeconfig);
    let log = cluster.folder().join("upstream.log");
    let _theirs = Process::start("upstream", command, log, cluster.lifetime())?;
    node("late").create(&client).await?;
    eventually_gated(&client, "late", NETWORK).await?;
    for name in nodes {
        stays_released(&client, name, GPU).await?;
    }
    // What the check is for.
    patch_rule(&client, "gpu", &dry_run(false)).await?;
    for name in nodes {
        eventually_gated(&client, name, GPU).await?;
    }
    Ok(())
}
