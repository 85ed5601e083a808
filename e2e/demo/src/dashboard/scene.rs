//! The cluster, in which the script is played.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use kube::Client;
use nodegate_testbed::changes::{set_node_condition, set_pod_ready};
use nodegate_testbed::prometheus::Prometheus;
use nodegate_testbed::sights::running_pod;
use nodegate_testbed::{
    Cluster, Controller, ControllerManager, Options, eventually, fixtures, ports,
};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::SCRAPE;
use super::script::{Change, LENGTH, Member, script};

const TAINT: &str = "readiness.k8s.io/network";
const STORAGE: &str = "example.com/StorageReady";
const NETWORK: &str = "daemonset.nodegate.dev/kube-system.cilium";
const UPLINK: &str = "example.com/UplinkHealthy";
const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";

/// The `DaemonSet`s in `kube-system`.
const CNI: &str = "cilium";
const DRIVER: &str = "gpu-driver";
const STRAY: &str = "node-agent";

/// The heartbeat interval of nodes, well within the grace period.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The timeout of every wait.
const SOON: Duration = Duration::from_secs(60);

/// A played story, with the Prometheus that observed it.
pub(super) struct Played {
    /// Its start, in seconds since 1970.
    pub begun: u64,
    pub prometheus: Prometheus,
    _controller: Controller,
    _cluster: Cluster,
}

/// Plays the story.
pub(super) async fn play() -> Result<Played> {
    let options = Options {
        controller_manager: ControllerManager::Complete,
        kwok: Some(HEARTBEAT),
        ..Options::full()
    };
    let cluster = Cluster::start(options).await?;
    let addresses = [address()?, address()?];
    let prometheus = Prometheus::start(&cluster, &configuration(&addresses)).await?;
    let metrics = addresses.map(|address| format!("--metrics-bind-address={address}"));
    let first = Controller::start(&cluster, &["--leader-elect", &metrics[0]]).await?;
    let second = Controller::start(&cluster, &["--leader-elect", &metrics[1]]).await?;
    let client = cluster.client().await?;
    prepare(&client).await?;
    eventually("both instances are scraped", SOON, async || {
        let up = prometheus.query("count(nodegate_leader) == 2").await?;
        Ok(!up.is_empty())
    })
    .await?;

    let begun = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let beginning = Instant::now();
    let mut leader = Some(first);
    for (at, change) in script() {
        sleep_until(beginning + Duration::from_millis(100) * at).await;
        if change == Change::Handover {
            let leader = leader.take().context("two handovers")?;
            leader.stop().await?;
            continue;
        }
        apply(&cluster, &client, change).await?;
    }
    sleep_until(beginning + Duration::from_secs(LENGTH.into())).await;
    // The last scrapes can only be queried after they are done.
    sleep(2 * SCRAPE).await;
    Ok(Played {
        begun,
        prometheus,
        _controller: second,
        _cluster: cluster,
    })
}

fn address() -> Result<String> {
    Ok(format!("127.0.0.1:{}", ports::free()?))
}

/// Prometheus's scrape configuration.
fn configuration(addresses: &[String; 2]) -> String {
    let [first, second] = addresses;
    format!(
        "
global: {{scrape_interval: {}s}}
scrape_configs:
- job_name: nodegate
  static_configs:
  - {{targets: ['{first}'], labels: {{instance: nodegate-0}}}}
  - {{targets: ['{second}'], labels: {{instance: nodegate-1}}}}
",
        SCRAPE.as_secs()
    )
}

/// Creates the rules and what they wait for.
async fn prepare(client: &Client) -> Result<()> {
    let network = fixtures::rule("network", TAINT).bootstrap_only();
    let network = network.waits_for(NETWORK).waits_for(STORAGE);
    network.create(client).await?;
    let gpu = fixtures::rule("gpu", "readiness.k8s.io/gpu").selects("pool", "gpu");
    gpu.waits_for(COMPONENTS).create(client).await?;
    let uplink = fixtures::rule("uplink", "readiness.k8s.io/uplink").waits_for(UPLINK);
    let uplink = uplink.spec("disruption", json!({"evictionRate": 0.2}));
    uplink.create(client).await?;
    let cni = fixtures::daemon_set(&format!("kube-system/{CNI}")).tolerate_everything();
    cni.never_ready().create(client).await?;
    let driver = fixtures::daemon_set(&format!("kube-system/{DRIVER}")).critical();
    let driver = driver.node_selector("pool", "gpu").tolerate_everything();
    let driver = driver.ready_after(Duration::from_secs(6));
    driver.create(client).await?;
    Ok(())
}

async fn apply(cluster: &Cluster, client: &Client, change: Change) -> Result<()> {
    match change {
        Change::Join(member) => join(client, member).await,
        Change::Network(member) => set_pod(client, member, CNI, true).await,
        Change::Storage(member) => {
            set_node_condition(client, &member.name(), STORAGE, "True").await
        }
        Change::Uplink(member, works) => {
            let status = if works { "True" } else { "False" };
            set_node_condition(client, &member.name(), UPLINK, status).await
        }
        Change::Driver(member, works) => set_pod(client, member, DRIVER, works).await,
        Change::Stray(true) => {
            let stray = fixtures::daemon_set(&format!("kube-system/{STRAY}")).critical();
            let stray = stray.node_selector("pool", "gpu");
            stray.create(client).await.map(drop)
        }
        Change::Stray(false) => {
            let delete = ["delete", "daemonset", STRAY, "--namespace=kube-system"];
            cluster.kubectl(&delete).await.map(drop)
        }
        Change::Handover => Ok(()),
    }
}

async fn join(client: &Client, member: Member) -> Result<()> {
    let node = fixtures::node(&member.name()).taint(TAINT, "NoSchedule");
    let node = node.allocatable("pods", "100").allocatable("cpu", "8");
    let node = node.label("topology.kubernetes.io/region", "eu");
    let node = node.label("topology.kubernetes.io/zone", member.zone());
    let pool = if member.has_gpus() { "gpu" } else { "general" };
    let node = node.label("pool", pool).condition(UPLINK, "True");
    node.managed_by_kwok().create(client).await.map(drop)
}

/// Sets the pod of a `DaemonSet` on a node Ready or not.
async fn set_pod(client: &Client, member: Member, daemon_set: &str, ready: bool) -> Result<()> {
    let pod = running_pod(client, &member.name(), daemon_set).await?;
    set_pod_ready(client, "kube-system", &pod, ready).await
}
