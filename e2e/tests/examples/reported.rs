//! Examples about conditions that others report.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod};
use kube::ResourceExt;
use nodegate_tests::fixture;
use nodegate_tests::server::{Server, status};
use serde_json::Value;
use testkit::nodegate::binaries::{Binaries, Component};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::node;
use testkit::nodegate::{Reporter, eventually, state, tool};

use crate::scene::{SOON, Scene, examples, read};

const CLOCK: &str = "readiness.k8s.io/clock";

/// The example's configuration of Node Problem Detector.
struct Monitor {
    configuration: Value,
    check: String,
}

impl Monitor {
    fn read() -> Result<Self> {
        let config_map: ConfigMap = read("node-problem-detector/config-map.yaml")?;
        let data = config_map.data.context("no data")?;
        Ok(Self {
            configuration: serde_json::from_str(&data["clock-monitor.json"])?,
            check: data["check-clock.sh"].clone(),
        })
    }

    /// Sets the condition after a check with this exit code, as the detector does.
    async fn report(&self, scene: &Scene, node: &str, exit_code: i32) -> Result<()> {
        let condition = self.configuration["rules"][0]["condition"].as_str();
        let status = match exit_code {
            0 => "False",
            1 => "True",
            _ => "Unknown",
        };
        let condition = condition.context("no condition")?;
        set_node_condition(&scene.client, node, condition, status).await
    }

    /// Runs the check with this `timedatectl`; returns its exit code and its output.
    fn run_check(&self, timedatectl: &str) -> Result<(Option<i32>, String)> {
        let script = format!("timedatectl() {{ {timedatectl}; }}\n{}", self.check);
        let output = Command::new("sh").arg("-c").arg(script).output()?;
        let printed = String::from_utf8(output.stdout)?;
        Ok((output.status.code(), printed.trim().to_owned()))
    }
}

#[test]
fn the_clock_check_tells_the_three_cases_apart() -> Result<()> {
    let monitor = Monitor::read()?;
    assert_eq!(monitor.run_check("echo yes")?, (Some(0), String::new()));
    let (code, printed) = monitor.run_check("echo no")?;
    assert_eq!(code, Some(1));
    assert_eq!(printed, "the clock is not synchronized with any server");
    let (code, printed) = monitor.run_check("return 1")?;
    assert_eq!((code, printed.as_str()), (Some(2), "timedatectl failed"));
    Ok(())
}

#[test]
fn the_monitor_reports_the_condition_that_the_rule_waits_for() -> Result<()> {
    let monitor = Monitor::read()?.configuration;
    let rule: Value = read("node-problem-detector/rule.yaml")?;
    let condition = &rule["spec"]["conditions"][0];
    assert_eq!(monitor["plugin"], "custom");
    assert_eq!(monitor["conditions"][0]["type"], condition["type"]);
    assert_eq!(monitor["rules"][0]["condition"], condition["type"]);
    assert_eq!(monitor["rules"][0]["type"], "permanent");
    // The default is the status of a healthy node.
    assert_eq!(condition["defaultStatus"], condition["requiredStatus"]);
    Ok(())
}

#[tokio::test]
async fn examples_node_problem_detector() -> Result<()> {
    let monitor = Monitor::read()?;
    let scene = Scene::of("node-problem-detector", None).await?;
    scene.in_earnest("clock").await?;
    let nodes = ["worker-1", "worker-2", "worker-3"];
    for name in nodes {
        scene.join(node(name)).await?;
    }
    for name in nodes {
        scene.keeps_taint(name, CLOCK, false).await?;
        monitor.report(&scene, name, 0).await?;
    }
    let (code, _) = monitor.run_check("echo no")?;
    let code = code.context("the check was killed")?;
    monitor.report(&scene, "worker-1", code).await?;
    scene.has_taint("worker-1", CLOCK, true).await?;
    scene.keeps_taint("worker-2", CLOCK, false).await?;
    monitor.report(&scene, "worker-1", 0).await?;
    scene.has_taint("worker-1", CLOCK, false).await?;

    // The time servers are down.
    for name in nodes {
        monitor.report(&scene, name, code).await?;
    }
    eventually("the rule holds back", SOON, async || {
        let limited = state::rule_condition(&scene.client, "clock", "DisruptionLimited").await?;
        Ok(limited["reason"] == "AllZonesDisrupted")
    })
    .await?;
    let mut held = 0;
    for name in nodes {
        held += usize::from(state::has_taint(&scene.client, name, CLOCK).await?);
    }
    ensure!(held <= 1, "{held} nodes were gated");

    // The detector reports an unknown status.
    monitor.report(&scene, "worker-2", 2).await?;
    scene.delete_rule("clock").await?;
    for name in nodes {
        scene.has_taint(name, CLOCK, false).await?;
    }
    Ok(())
}

#[tokio::test]
async fn examples_disruption() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/network-health";
    const HEALTHY: &str = "network.example.com/Healthy";
    let scene = Scene::of("disruption", None).await?;
    scene.in_earnest("network-health").await?;
    // Nobody has reported about this one.
    scene.join(node("silent")).await?;
    scene
        .join(node("broken").condition(HEALTHY, "False"))
        .await?;
    scene.has_taint("broken", TAINT, true).await?;
    scene.keeps_taint("silent", TAINT, false).await?;
    set_node_condition(&scene.client, "broken", HEALTHY, "True").await?;
    scene.has_taint("broken", TAINT, false).await?;
    // From now on there is a grace period.
    set_node_condition(&scene.client, "broken", HEALTHY, "False").await?;
    scene.keeps_taint("broken", TAINT, false).await
}

#[tokio::test]
async fn examples_in_order() -> Result<()> {
    const FIRST: &str = "readiness.k8s.io/network-first";
    const SECOND: &str = "readiness.k8s.io/bandwidth";
    let scene = Scene::of("in-order", None).await?;
    let new = node("worker")
        .label("kubernetes.io/os", "linux")
        .condition("example.com/BandwidthChecked", "True");
    scene.join(new).await?;
    scene.has_taint("worker", SECOND, true).await?;
    scene.turn_ready("worker").await?;
    scene.keeps_taint("worker", SECOND, true).await?;
    assert_eq!(state::pods_on(&scene.client, "worker").await?.len(), 0);
    let report = async |condition, status| {
        set_node_condition(&scene.client, "worker", condition, status).await
    };
    // The check finds what it found at the boot before only once the network is up.
    report("example.com/BandwidthChecked", "False").await?;
    report("example.com/NetworkReady", "True").await?;
    scene.has_taint("worker", FIRST, false).await?;
    scene.pod("bandwidth-check", "worker").await?;
    scene.keeps_taint("worker", SECOND, true).await?;
    report("example.com/BandwidthChecked", "True").await?;
    scene.has_taint("worker", SECOND, false).await
}

/// Runs `apply-calico.sh` on a stand-in for Calico's manifest.
async fn apply_calico(scene: &Scene) -> Result<()> {
    let kubectl = Binaries::locate()?.path(Component::Kubectl)?;
    let tools = kubectl.parent().context("a folder with kubectl")?;
    let path = std::env::var("PATH")?;
    let mut script = Command::new("sh");
    script
        .arg(examples().join("cni-readiness/apply-calico.sh"))
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("KUBECONFIG", scene.cluster.kubeconfig())
        .env("CALICO", fixture("calico.yaml"))
        .env("IMAGE", "registry.example.com/nodegate:9.9.9");
    tool::run(script, "").await.map(drop)
}

/// The reporter in Calico's pod.
fn sidecar(pod: &Pod) -> Option<&Container> {
    let mut containers = pod.spec.as_ref()?.containers.iter();
    containers.find(|container| container.name == "cni-status-patcher")
}

/// Runs the sidecar of a pod as a process, with that pod's token.
async fn run_sidecar(scene: &Scene, pod: &Pod, felix: SocketAddr) -> Result<Reporter> {
    let container = sidecar(pod).context("no sidecar")?;
    assert_eq!(
        container.image.as_deref(),
        Some("registry.example.com/nodegate:9.9.9")
    );
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let environment: Vec<(&str, String)> = container
        .env
        .iter()
        .flatten()
        // The test has ports of its own.
        .filter(|variable| variable.name != "METRICS_BIND_ADDRESS")
        .map(|variable| {
            let value = variable.value.as_deref().or(node).unwrap_or_default();
            let value = value.replace("localhost:9099", &felix.to_string());
            (variable.name.as_str(), value)
        })
        .collect();
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let token = scene
        .cluster
        .kubeconfig_for_pod("kube-system", "calico-node", &pod.name_any())
        .await?;
    Reporter::start(&scene.cluster, &token, &environment)
}

/// `reporter` and `policy` apply the folder, which has the reporter as a `DaemonSet` of its own.
#[tokio::test]
async fn examples_cni_readiness() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/NetworkReady";
    const READY: &str = "network.k8s.io/CalicoReady";
    let scene = Scene::of("cni-readiness/network-readiness-rule.yaml", None).await?;
    let worker = node("worker")
        .label("node-role.kubernetes.io/worker", "")
        .allocatable("memory", "8Gi");
    scene.join(worker).await?;
    scene.has_taint("worker", TAINT, true).await?;
    apply_calico(&scene).await?;
    let pod = eventually("Calico's pod has the sidecar", SOON, async || {
        let pod = scene.pod("calico-node", "worker").await?;
        Ok(sidecar(&pod).is_some().then_some(pod))
    })
    .await?;

    // In place of `localhost:9099`.
    let felix = Server::http(status("503 Service Unavailable")).await?;
    let reporter = run_sidecar(&scene, &pod, felix.address).await?;
    let unready = "/readiness answered 503";
    let not_ready = scene.is_unmet("worker", READY, unready).await;
    not_ready.with_context(|| reporter.log())?;
    scene.keeps_taint("worker", TAINT, true).await?;
    felix.set(status("200 OK"));
    scene.has_taint("worker", TAINT, false).await?;
    // A restart of Calico does not gate the node again.
    felix.set(status("503 Service Unavailable"));
    scene.is_unmet("worker", READY, unready).await?;
    scene.keeps_taint("worker", TAINT, false).await
}
