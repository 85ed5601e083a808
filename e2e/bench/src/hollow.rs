//! Measures the time from a readiness probe to a lifted taint, with Kubernetes' own hollow kubelets, which only simulate
//! containers. Each probes the benchmark's HTTP endpoint for a pod of a critical `DaemonSet`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::{Stream, StreamExt, pin_mut};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use nodegate_testbed::fixtures::{daemon_set, rule};
use nodegate_testbed::go_module::{GoModule, Recipe, kubernetes_linker_flags};
use nodegate_testbed::process::{Lifetime, Process};
use nodegate_testbed::sights::{count_taints, is_ready};
use nodegate_testbed::{Cluster, Controller, ControllerManager, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use crate::measure::Latencies;

const HOLLOW: Recipe = Recipe {
    source: concat!(env!("CARGO_MANIFEST_DIR"), "/hollow"),
    folder: "hollow",
    name: "the hollow kubelet",
    pins: "k8s.io/kubernetes",
    packages: &["."],
    tags: "",
    c: false,
    binaries: &["hollow"],
    links: Vec::new,
    linker_flags: kubernetes_linker_flags,
    takes: "about 2 minutes after the control plane",
};

const TAINT: &str = "readiness.k8s.io/critical";
const CRITICAL: &str = "node.gardener.cloud/CriticalComponentsReady";

/// The timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(180);

/// The observed state of a node: whether it is closed, whether its critical pod is Ready, and since when.
#[derive(Debug, Clone, Copy, Default)]
struct Sight {
    closed: Option<(bool, Instant)>,
    ready: Option<(bool, Instant)>,
}

impl Sight {
    /// Whether it is open with a Ready pod, or closed without one.
    fn is(&self, open: bool) -> bool {
        let is = |flag: Option<(bool, Instant)>, what| flag.is_some_and(|(is, _)| is == what);
        is(self.closed, !open) && is(self.ready, open)
    }
}

/// An observation from a watch.
enum Seen {
    /// A node: its name, and whether it is closed.
    Node(String, bool),
    /// A pod: its node, if it has one, and whether it is Ready.
    Pod(Option<String>, bool),
}

impl Seen {
    fn node(node: &Node) -> Self {
        Self::Node(node.name_any(), count_taints(node, TAINT) > 0)
    }

    fn pod(pod: &Pod) -> Self {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        Self::Pod(node, is_ready(pod))
    }
}

/// All nodes, according to the watches.
struct View<S> {
    sights: BTreeMap<String, Sight>,
    events: S,
}

impl<S: Stream<Item = watcher::Result<Seen>> + Unpin> View<S> {
    /// Follows the watches until this many nodes are open, or closed.
    async fn until(&mut self, nodes: usize, open: bool) -> Result<()> {
        let all = async {
            while self.sights.values().filter(|sight| sight.is(open)).count() < nodes {
                let seen = self
                    .events
                    .next()
                    .await
                    .context("the watches have ended")??;
                self.take(seen);
            }
            anyhow::Ok(())
        };
        let waited = timeout(PATIENCE, all).await;
        waited.with_context(|| format!("waiting until {nodes} nodes are open: {open}"))?
    }

    fn take(&mut self, seen: Seen) {
        let now = Instant::now();
        let turn = |flag: &mut Option<(bool, Instant)>, is| {
            if flag.is_none_or(|(was, _)| was != is) {
                *flag = Some((is, now));
            }
        };
        match seen {
            Seen::Node(name, is_closed) => {
                turn(&mut self.sights.entry(name).or_default().closed, is_closed);
            }
            Seen::Pod(Some(node), is_ready) => {
                turn(&mut self.sights.entry(node).or_default().ready, is_ready);
            }
            Seen::Pod(None, _) => {}
        }
    }
}

/// The times of each step, over all rounds.
#[derive(Debug, Default)]
struct Parts {
    /// From the first successful probe answer until the pod is observed Ready.
    probe: Vec<Duration>,
    /// From there until the taint is gone.
    lift: Vec<Duration>,
    /// The sum of both.
    all: Vec<Duration>,
}

impl Parts {
    fn add(&mut self, began: Instant, sights: &BTreeMap<String, Sight>) {
        for sight in sights.values() {
            let (Some((_, ready)), Some((_, opened))) = (sight.ready, sight.closed) else {
                continue;
            };
            self.probe.push(ready.saturating_duration_since(began));
            self.lift.push(opened.saturating_duration_since(ready));
            self.all.push(opened.saturating_duration_since(began));
        }
    }

    fn print(self) {
        for (what, sample) in [
            ("probed well -> pod Ready, as a watch shows it", self.probe),
            ("pod Ready -> taint gone, as watches show them", self.lift),
            ("the whole way", self.all),
        ] {
            if let Some(it) = Latencies::of(sample) {
                println!(
                    "{what:48} n={:4}  p50 {:7.1} ms  p99 {:7.1} ms  max {:7.1} ms",
                    it.count, it.p50, it.p99, it.max
                );
            }
        }
    }
}

/// Runs this many hollow kubelets, and lets all their probes fail and succeed this many times.
///
/// # Errors
///
/// When something does not start, or nodes do not open in time.
pub async fn run(nodes: usize, rounds: usize) -> Result<()> {
    let program = GoModule::read(&HOLLOW)?.build()?.join("hollow");
    let options = Options {
        controller_manager: ControllerManager::Complete,
        kwok: None,
        ..Options::full()
    };
    let cluster = Cluster::start(options).await?;
    let client = cluster.client().await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    rule("critical", TAINT)
        .waits_for(CRITICAL)
        .create(&client)
        .await?;
    let is_well = Arc::new(AtomicBool::new(false));
    let port = answer_probes(Arc::clone(&is_well)).await?;
    create_agent(&client, port).await?;

    let pods = watch(
        &client,
        watcher::Config::default().labels("app=agent"),
        Seen::pod,
    );
    let all = watch(&client, watcher::Config::default(), Seen::node);
    let events = futures::stream::select(pods, all);
    pin_mut!(events);
    let mut view = View {
        sights: BTreeMap::new(),
        events,
    };

    let began = Instant::now();
    let kubelets: Result<Vec<Process>> = (0..nodes)
        .map(|number| start(&cluster, &program, &format!("hollow-{number:03}")))
        .collect();
    let kubelets = kubelets?;
    view.until(nodes, false).await?;
    println!(
        "{nodes} hollow kubelets have registered, closed: {:.1} s",
        began.elapsed().as_secs_f64()
    );

    // The first round does not count: it includes the start of the pods.
    is_well.store(true, Ordering::Relaxed);
    view.until(nodes, true).await?;
    let memory: Result<Vec<u64>> = kubelets.iter().map(|it| it.memory("VmRSS")).collect();
    let most = memory?.into_iter().max().unwrap_or_default();
    println!("each has up to {} MiB", most >> 10);

    let mut parts = Parts::default();
    for _ in 0..rounds {
        is_well.store(false, Ordering::Relaxed);
        view.until(nodes, false).await?;
        let began = Instant::now();
        is_well.store(true, Ordering::Relaxed);
        view.until(nodes, true).await?;
        parts.add(began, &view.sights);
    }
    parts.print();
    Ok(())
}

/// The current state of each object in a watch.
fn watch<K>(
    client: &Client,
    of: watcher::Config,
    seen: fn(&K) -> Seen,
) -> impl Stream<Item = watcher::Result<Seen>> + Unpin + use<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
    K: serde::de::DeserializeOwned,
{
    let objects = watcher(Api::<K>::all(client.clone()), of).applied_objects();
    objects
        .map(move |object| object.map(|object| seen(&object)))
        .boxed()
}

/// A critical `DaemonSet` whose pods are Ready while the benchmark answers their probes with success.
async fn create_agent(client: &Client, port: u16) -> Result<()> {
    let agent = daemon_set("kube-system/agent").critical();
    let mut agent = serde_json::to_value(agent.tolerate_everything().build())?;
    let pod = &mut agent["spec"]["template"]["spec"];
    pod["hostNetwork"] = Value::Bool(true);
    pod["containers"][0]["readinessProbe"] = json!({
        "httpGet": {"host": "127.0.0.1", "port": port, "path": "/"},
        "periodSeconds": 1,
        "failureThreshold": 1,
    });
    let agent: DaemonSet = serde_json::from_value(agent)?;
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    sets.create(&PostParams::default(), &agent).await?;
    Ok(())
}

/// Starts the kubelet of a node.
fn start(cluster: &Cluster, program: &Path, name: &str) -> Result<Process> {
    let kubeconfig = cluster.folder().join(format!("{name}.kubeconfig"));
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "hollow",
        "clusters": [{"name": "bench", "cluster": {
            "server": cluster.url(),
            "certificate-authority": cluster.folder().join("ca.crt"),
        }}],
        "users": [{"name": "hollow", "user": {
            "token": cluster.admin_token(),
            "as": format!("system:node:{name}"),
            "as-groups": ["system:nodes", "system:authenticated"],
        }}],
        "contexts": [{"name": "hollow", "context": {"cluster": "bench", "user": "hollow"}}],
    });
    fs::write(&kubeconfig, content.to_string()).context("writing a kubelet's kubeconfig")?;
    let mut command = Command::new(program);
    command
        .args(["--name", name, "--taint", TAINT, "--kubeconfig"])
        .arg(kubeconfig)
        .env("TMPDIR", cluster.folder());
    let log = cluster.folder().join(format!("{name}.log"));
    Process::start(name, command, log, Lifetime::Owner)
}

/// Answers probes with success or failure; returns the port.
async fn answer_probes(is_well: Arc<AtomicBool>) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let is_well = is_well.load(Ordering::Relaxed);
            tokio::spawn(answer(connection, is_well));
        }
    });
    Ok(port)
}

async fn answer(mut connection: TcpStream, is_well: bool) -> std::io::Result<()> {
    // Larger than the request of a probe.
    let mut request = [0; 2048];
    let _ = connection.read(&mut request).await?;
    let status = if is_well {
        "200 OK"
    } else {
        "503 Service Unavailable"
    };
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    connection.write_all(answer.as_bytes()).await
}
