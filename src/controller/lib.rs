//! The controller connects the [`engine`](nodegate_engine) to the cluster: `driver` is the loop, `feed` feeds it and `requests`
//! carries out its requests. The other files serve probes and metrics, and elect a leader.

mod answer;
mod brake;
mod clock;
mod counts;
mod driver;
mod feed;
mod gauges;
pub(crate) mod health;
mod lease;
mod limiter;
pub(crate) mod metrics;
mod requests;
#[cfg(test)]
#[path = "../core/testing/mod.rs"]
mod testing;
mod unused;
mod webhook;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::info;

use brake::Brake;
use counts::Counter;
use driver::{Driver, Inputs, Leadership};
use feed::{Feeder, Watches};
use gauges::Gauges;
use health::Readiness;
use lease::{Election, Sight};
use metrics::Metrics;
use nodegate_cluster::process::{Instance, LogArgs, from_environment, own_namespace, told_to_stop};
use nodegate_cluster::{bookmarks, client};
use nodegate_core::config::{Config, ConfigError, RunsWith};
use nodegate_core::guard::Limits;
use nodegate_core::text::documentation;
use nodegate_engine::election::{Loss, Term};
use nodegate_engine::{Engine, Settings};
use nodegate_serve::address::{BindAddress, listen, parse_address};
use nodegate_serve::metric::Description;
use requests::Requester;

const WRITES_AT_A_TIME: u16 = 64;
/// How long the webhook serves after the signal to stop: API servers learn only a moment later that its endpoint is gone.
const WEBHOOK_GRACE: Duration = Duration::from_secs(5);
/// How many watch events may wait for the loop before the watches slow down.
const CHANGES: usize = 1024;

/// Keeps pods off Kubernetes nodes until everything the node needs is really there, as `NodeReadinessRule`s say.
// As elsewhere in Kubernetes, what is appended to a Deployment's arguments wins.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "nodegate-controller", version, args_override_self = true, mut_args = from_environment,
          after_help = format!("Documentation: {}", documentation::page("first-rule.md")))]
pub struct ControllerArgs {
    /// Kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's service account is used
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Configuration file (YAML) with critical component classes and passing taints; without it, Gardener's class
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Address of /healthz and /readyz; `0` turns them off
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", value_parser = parse_address)]
    health_probe_bind_address: BindAddress,

    /// Let one instance write at a time, elected by a Lease; on by default in a pod that is given no --kubeconfig
    #[arg(long, value_name = "BOOL")]
    leader_elect: Option<bool>,

    /// Namespace of the Lease; without it the pod's own, or nrr-system
    #[arg(long, value_name = "NAMESPACE")]
    leader_election_namespace: Option<String>,

    /// How many nodes are written at a time, at most 1024; `0` for the default
    #[arg(long, value_name = "NODES", default_value_t = WRITES_AT_A_TIME, value_parser = writes_at_a_time)]
    node_concurrent_reconciles: u16,

    /// How many nodes each list of a rule's status may name; counts stay exact
    #[arg(long, value_name = "NODES", default_value_t = 20, value_parser = clap::value_parser!(u16).range(0..=5000))]
    status_node_limit: u16,

    /// Publish synthesized conditions on nodes, where `kubectl describe node` shows them
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    publish_conditions: bool,

    /// Watch Karpenter's `NodeClaim`s and `NodePool`s, so that rules can delete the claims of nodes that do not get
    /// ready (`repair.action: DeleteNodeClaim`); needs the permissions of `config/karpenter`
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    enable_karpenter: bool,

    /// Suspend all rules: no node is changed, except that rules being deleted clean up. With leader election the
    /// annotation `nodegate.dev/suspend-all: "true"` on the Lease does the same, without a restart
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    suspend_all: bool,

    #[command(flatten)]
    metrics: nodegate_serve::scrape::MetricsArgs,

    #[command(flatten)]
    disruption: Limits,

    #[command(flatten)]
    webhook: webhook::WebhookArgs,

    #[command(flatten)]
    limiter: limiter::LimiterArgs,

    #[command(flatten)]
    unused: unused::UnusedArgs,

    #[command(flatten)]
    log: LogArgs,
}

impl ControllerArgs {
    /// Whether a leader is elected: by default in a pod, where somebody may replace the arguments to debug one of two instances.
    fn elects(&self, is_pod: bool) -> bool {
        self.leader_elect
            .unwrap_or(is_pod && self.kubeconfig.is_none())
    }
}

/// Parses how many nodes are written at a time. Anything below 1 means the default, as in the Node Readiness Controller.
fn writes_at_a_time(text: &str) -> Result<u16, String> {
    const MOST: i64 = 1024;
    match text.parse::<i64>() {
        Ok(..=0) => Ok(WRITES_AT_A_TIME),
        Ok(number @ ..=MOST) => u16::try_from(number).map_err(|error| error.to_string()),
        Ok(_) => Err(format!("at most {MOST} nodes can be written at a time")),
        Err(error) => Err(error.to_string()),
    }
}

/// Names, types, labels and help texts of the controller's metrics.
pub fn metric_descriptions() -> Vec<Description> {
    let registry = Metrics::new().registry;
    Gauges::new(&registry);
    registry.descriptions()
}

/// Runs the controller until SIGTERM or SIGINT. Fails if it cannot start; later failures are logged and retried.
pub async fn run(args: ControllerArgs) -> anyhow::Result<()> {
    args.log.init();
    let config = args.config.as_deref().map(Config::read).transpose()?;
    let runs_with = RunsWith {
        config: config.unwrap_or_default(),
        limits: args.disruption,
    };
    let settings = settings(&args, &runs_with)?;
    let instance = Instance::current();
    // It tells the instances apart in the API server's audit log.
    let version = env!("CARGO_PKG_VERSION");
    let agent = format!("nodegate/{version} ({})", instance.unique);
    let cluster = client::config(args.kubeconfig.as_deref(), None, &agent).await?;
    let server = cluster.cluster_url.to_string();
    let server = server.trim_end_matches('/').to_owned();
    let watching = bookmarks::client(cluster.clone())?;
    let metrics = Metrics::new();
    let clock_offset = metrics.clock_offset.with_label_values(&[] as &[&str]);
    let client = clock::compared(client::connect(cluster)?, clock_offset.clone());
    let (readiness, probe) = watch::channel(Readiness::default());
    let (pulse, beats) = watch::channel(None);
    let (survey, surveys) = mpsc::channel(1);
    let elects = args.elects(std::env::var_os("KUBERNETES_SERVICE_HOST").is_some());
    let brake = Brake::new(args.suspend_all, elects);
    nodegate_serve::scrape::serve(&args.metrics, &client, metrics.registry.clone(), survey).await?;
    let shutdown = told_to_stop().context("cannot handle signals")?;
    let now = driver::now();
    let engine = Engine::new(&settings, now);
    let readers = engine.readers();
    let webhook = webhook::start(&args.webhook, &watching, settings.clone(), readers).await?;
    if let BindAddress(Some(address)) = args.health_probe_bind_address {
        let listener = listen(address, "health probes", "--health-probe-bind-address").await?;
        health::serve(listener, probe, webhook, brake.subscribe(), beats);
    }

    info!(
        server,
        classes = settings.classes.len(),
        version,
        "Starting Controller"
    );
    args.unused.log();
    let (sender, seen) = mpsc::channel(CHANGES);
    let (last_event, sight) = watch::channel(now.monotonic);
    let feeder = Feeder {
        changes: sender,
        readiness: readiness.clone(),
        last_event,
        server,
    };
    let watches = Watches::new(watching, feeder, metrics.clone());
    let (restored, is_restored) = watch::channel(());
    let (lead, leadership) = watch::channel(Leadership::Following);
    let sight = Sight {
        readiness: readiness.subscribe(),
        seen: sight,
        clock_offset: clock_offset.clone(),
    };
    let requester = Requester::new(&client, &instance.name, metrics.clone());
    let driver = Driver {
        engine,
        requester,
        watches,
        readiness,
        gauges: Gauges::new(&metrics.registry),
        counter: Counter::new(metrics),
        under_way: JoinSet::new(),
        inputs: Vec::new(),
    };
    let inputs = Inputs {
        seen,
        leadership,
        brake: brake.subscribe(),
        restored: is_restored,
        surveys,
        pulse,
    };
    let run = Box::pin(driver.run(inputs, shutdown));
    let ended = if elects {
        let namespace = args.leader_election_namespace.unwrap_or_else(own_namespace);
        let (identity, runs_with) = (instance.unique, runs_with.text());
        let election = Election::new(
            client, &namespace, identity, runs_with, sight, brake, restored,
        );
        elected(election, &lead, run).await
    } else {
        tokio::spawn(async move {
            clock::until_right(&client, &clock_offset).await;
            lead.send_replace(Leadership::Leading { until: None });
        });
        run.await
    };
    if ended.is_ok() && args.webhook.enable_webhook {
        tokio::time::sleep(WEBHOOK_GRACE).await;
    }
    // The log says why.
    let lost =
        "the lead was lost; starting again as a follower is up to whoever started this process";
    ended.map_err(|_| anyhow!(lost))
}

fn settings(args: &ControllerArgs, runs_with: &RunsWith) -> Result<Settings, ConfigError> {
    let (classes, passing_taints) = runs_with.config.parts()?;
    Ok(Settings {
        classes,
        passing_taints,
        publish_conditions: args.publish_conditions,
        enable_karpenter: args.enable_karpenter,
        watch_csi_nodes: args.webhook.enable_webhook,
        concurrency: args.node_concurrent_reconciles,
        rate: args.limiter.rate(),
        status_node_limit: args.status_node_limit.into(),
        disruption_limits: runs_with.limits,
    })
}

/// Runs the loop beside the election that tells it whether it may write. Releases the lease at the end, unless it was lost.
async fn elected(
    mut election: Election,
    lead: &watch::Sender<Leadership>,
    run: impl Future<Output = Result<(), Loss>>,
) -> Result<(), Loss> {
    let campaign = async {
        let leading = |term: Term| {
            let until = Some(term.ends());
            lead.send_replace(Leadership::Leading { until });
        };
        let loss = match election.win().await {
            Ok(term) => {
                leading(term);
                election.keep(term, leading).await
            }
            Err(loss) => loss,
        };
        lead.send_replace(Leadership::Ended(loss));
        std::future::pending().await
    };
    // The campaign is polled first, because the loop depends on its result.
    let ended = tokio::select! {
        biased;
        ended = campaign => ended,
        ended = run => ended,
    };
    if !matches!(ended, Err(Loss::Taken | Loss::RanOut)) {
        election.release().await;
    }
    ended
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn in_a_pod_a_leader_is_elected_unless_a_flag_says_otherwise() {
        for (arguments, is_pod, expected) in [
            (&["--zap-log-level=debug"][..], true, true),
            (&["--leader-elect=false"], true, false),
            (&["--kubeconfig=/tmp/kubeconfig"], true, false),
            (
                &["--kubeconfig=/tmp/kubeconfig", "--leader-elect"],
                true,
                true,
            ),
            (&[], false, false),
            (&["--leader-elect"], false, true),
        ] {
            let arguments = [&["controller"], arguments].concat();
            let args = ControllerArgs::try_parse_from(&arguments);
            let args = args.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(args.elects(is_pod), expected, "{arguments:?}, {is_pod}");
        }
    }
}
