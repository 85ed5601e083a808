//! The controller: watches, caches, the reconcile loop, and everything that is written to the cluster.
//!
//! | file | what it does |
//! |---|---|
//! | `watch` | one watch for each kind of object, feeding one channel |
//! | `cache` | what the watches have shown, and which nodes that concerns |
//! | `reconcile` | the loop: evaluates nodes, keeps writes under way |
//! | `rules` | the loop's care for the rules: finalizers, deletion, status |
//! | `patch` | the patches that carry plans out (pure) |
//! | `status` | a rule's status (pure) |
//! | `writer` | requests that change something, with a deadline each |
//! | `events` | Kubernetes Events, behind the writes |
//! | `health` | `/healthz` and `/readyz` |

mod cache;
mod events;
mod health;
mod patch;
mod reconcile;
mod rules;
mod status;
mod watch;
mod writer;

use std::net::SocketAddr;
use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config as ClientConfig};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch as cell};
use tracing::info;

use crate::config::{Config, ConfigError};
use crate::webhook;
use cache::Cache;
use events::EventSink;
use health::Readiness;
use reconcile::{Reconciler, Settings};
pub(crate) use watch::with_causes;
use writer::Writer;

/// How many watch events may wait for the loop before the watches are slowed down.
const CHANGES: usize = 1024;

/// Watches the cluster and puts on and lifts the taints of `NodeReadinessRule`s.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's service account is used
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Configuration file (YAML) with critical component classes and passing taints; without it, Gardener's class
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Address of /healthz and /readyz; `0` turns them off
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", value_parser = parse_address)]
    pub health_probe_bind_address: BindAddress,

    /// How many nodes are written at a time
    #[arg(long, value_name = "NODES", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub node_concurrent_reconciles: u16,

    /// How many nodes each list of a rule's status may name; counts stay exact
    #[arg(long, value_name = "NODES", default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=5000))]
    pub status_node_limit: u16,

    /// Publish synthesized conditions on nodes, where `kubectl describe node` shows them
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub publish_conditions: bool,

    /// The validation webhook.
    #[command(flatten)]
    pub webhook: webhook::Args,
}

/// An address to listen on, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindAddress(pub(crate) Option<SocketAddr>);

/// Reads an address as Kubernetes components take it: `:8081`, `127.0.0.1:8081`, or `0` for none.
pub(crate) fn parse_address(text: &str) -> Result<BindAddress, String> {
    if text == "0" {
        return Ok(BindAddress(None));
    }
    let full = if text.starts_with(':') {
        format!("0.0.0.0{text}")
    } else {
        text.to_owned()
    };
    full.parse()
        .map(|address| BindAddress(Some(address)))
        .map_err(|_| "expected [HOST]:PORT, such as :8081 or 127.0.0.1:8081, or 0 for none".into())
}

/// Why the controller cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is nothing that says where the cluster is.
    #[error("cannot tell which cluster to use: {0} (give --kubeconfig FILE, or set KUBECONFIG)")]
    Cluster(String),
    /// The client cannot be made from the kubeconfig.
    #[error("cannot make a client from the kubeconfig: {0}")]
    Client(String),
    /// The probes' address cannot be listened on.
    #[error(
        "cannot listen on {address} for health probes: {source} (choose another --health-probe-bind-address)"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The webhook cannot start.
    #[error(transparent)]
    Webhook(#[from] webhook::Error),
    /// Signals cannot be handled.
    #[error("cannot handle signals: {0}")]
    Signal(std::io::Error),
}

/// Runs the controller until it is told to stop by SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start. What goes wrong later is logged and tried again.
pub async fn run(args: Args) -> Result<(), Error> {
    let config = match &args.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    let classes = config.classes()?;
    let client = client(&args).await?;
    let (readiness, probe) = cell::channel(Readiness::default());
    if let BindAddress(Some(address)) = args.health_probe_bind_address {
        let listening = health::serve(address, probe).await;
        listening.map_err(|source| Error::Listen { address, source })?;
    }
    if args.webhook.enable_webhook {
        let readiness = readiness.clone();
        let report = move |problem| readiness.send_modify(|readiness| readiness.webhook = problem);
        webhook::start(&args.webhook, &client, &classes, report).await?;
    }
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signal)?;
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };

    let (sender, changes) = mpsc::channel(CHANGES);
    watch::spawn_all(&client, &classes, &sender, &readiness);
    drop(sender);
    let (busy, is_busy) = cell::channel(false);
    let events = EventSink::start(client.clone(), instance(), is_busy);
    let cache = Cache::new(classes, config.passing_taints, args.publish_conditions);
    let settings = Settings {
        concurrency: args.node_concurrent_reconciles.into(),
        status_node_limit: args.status_node_limit.into(),
    };
    info!(
        classes = cache.classes().len(),
        version = env!("CARGO_PKG_VERSION"),
        "nodegate controller starting"
    );
    Reconciler::new(
        cache,
        Writer::new(&client),
        events,
        busy,
        readiness,
        settings,
    )
    .run(changes, shutdown)
    .await;
    Ok(())
}

async fn client(args: &Args) -> Result<Client, Error> {
    let cluster = |error: &dyn std::error::Error| Error::Cluster(watch::with_causes(error));
    let mut config = match &args.kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| cluster(&error))?;
            let config =
                ClientConfig::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                    .await;
            config.map_err(|error| cluster(&error))?
        }
        None => ClientConfig::infer()
            .await
            .map_err(|error| cluster(&error))?,
    };
    // The client would replay writes long after the plan behind them is stale.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| Error::Client(watch::with_causes(&error)))
}

/// The name of this instance in Events: the pod's, or the host's.
fn instance() -> String {
    std::env::var("POD_NAME")
        .or_else(|_| std::env::var("HOSTNAME"))
        .unwrap_or_else(|_| "nodegate".into())
}
