//! The reporter: a sidecar that checks an endpoint on its node and reports the outcome as a condition of the Node.
//! It knows nothing of rules and taints. What to write, and when, is a state machine over outcomes and time (`state`); the rest
//! makes checks and requests for it.

mod boot;
mod check;
mod endpoint;
mod metrics;
mod node;
mod outcome;
mod settings;
mod state;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;
use tracing::{info, warn};

use crate::client;
use crate::engine::{Backoff, Pauses};
use crate::metric::Description;
use crate::serve::address::{BindAddress, listen};
use crate::shutdown::told_to_stop;
use boot::Boot;
use check::{Checker, command};
use metrics::{ReporterHealth, ReporterMetrics, WriteResult};
use node::{FoundCondition, ReportedNode, RequestFailure};
use outcome::CheckOutcome;
use settings::ReporterSettings;
pub use settings::{Args, SettingError};
use state::ReporterState;

/// How many outcomes may wait while the API server is being written to.
const OUTCOMES: usize = 16;
/// The shortest and the longest pause before a request to the API server is tried again.
const PAUSES: Pauses = Pauses::between(Duration::from_millis(500), Duration::from_secs(30));
/// How many checks may fail to end before the reporter counts as dead, and how long it has at least: while a write to the API
/// server hangs, the reporter takes no outcomes.
const MISSED_CHECKS: (u32, Duration) = (3, Duration::from_secs(60));

/// Why the reporter ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting cannot be used.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// There is no API server to report to.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// Signals cannot be handled.
    #[error("cannot handle signals: {0}")]
    Signal(std::io::Error),
    /// It was to end with a success, and was stopped before that.
    #[error("stopped before {0} was True (REPORT_ONCE is set)")]
    StoppedEarly(String),
}

/// The reporter's metrics.
#[must_use]
pub fn metric_descriptions() -> Vec<Description> {
    ReporterMetrics::new().descriptions()
}

/// Checks and reports until it is told to stop by SIGTERM or SIGINT; with `REPORT_ONCE`, until the condition is `True`.
///
/// # Errors
/// When it cannot start, or is stopped too early. What goes wrong later is logged and tried again.
pub async fn run(args: Args) -> Result<(), Error> {
    let settings = ReporterSettings::read(&args)?;
    let shutdown = told_to_stop().map_err(Error::Signal)?;
    let checker = Checker::new(&settings)?;
    let node = ReportedNode::new(&args, &settings).await?;
    let metrics = ReporterMetrics::new();
    let (health, probe) = watch::channel(ReporterHealth::new());
    let patience = (settings.interval + settings.timeout) * MISSED_CHECKS.0;
    let patience = patience.max(MISSED_CHECKS.1);
    serve(&settings, metrics.clone(), probe, patience);
    info!(
        node = settings.node,
        condition = settings.condition_type,
        endpoint = %settings.endpoint,
        interval = ?settings.interval,
        version = env!("CARGO_PKG_VERSION"),
        "nodegate reporter starting"
    );
    let (sender, outcomes) = mpsc::channel(OUTCOMES);
    let reporter = Reporter {
        state: ReporterState::new(settings.policy.clone()),
        settings: &settings,
        node,
        metrics: metrics.clone(),
        health: health.clone(),
        retry: Backoff::default(),
        problem: None,
    };
    // A signal drops whatever is under way: the condition is not worth a wait.
    let stopped = tokio::select! {
        biased;
        () = shutdown => true,
        () = check_on_and_on(&checker, &settings, &metrics, &health, &sender) => true,
        () = reporter.run(outcomes) => false,
    };
    if stopped && settings.once {
        return Err(Error::StoppedEarly(settings.condition_type));
    }
    info!("nodegate reporter stopped");
    Ok(())
}

/// Serves metrics and probes, if they are wanted. Where the address is taken (by another reporter on the host network), the
/// reporter goes on without them.
fn serve(
    settings: &ReporterSettings,
    metrics: ReporterMetrics,
    health: watch::Receiver<ReporterHealth>,
    patience: Duration,
) {
    let BindAddress(Some(address)) = settings.metrics else {
        return;
    };
    match listen(address, "metrics and probes", "METRICS_BIND_ADDRESS") {
        Ok(listener) => metrics::serve(listener, metrics, health, patience),
        Err(problem) => warn!("going on without metrics and probes: {problem}"),
    }
}

/// Makes one check after the other, for as long as somebody takes the outcomes.
///
/// The first one is made at once: a node may be waiting for it. The second one comes early, by this reporter's phase, so that
/// reporters that start together do not go on checking together.
async fn check_on_and_on(
    checker: &Checker,
    settings: &ReporterSettings,
    metrics: &ReporterMetrics,
    health: &watch::Sender<ReporterHealth>,
    outcomes: &mpsc::Sender<CheckOutcome>,
) {
    command::adopt_orphans();
    let mut next = Instant::now();
    let mut pause = settings
        .interval
        .mul_f64(f64::midpoint(settings.policy.phase, 1.0));
    loop {
        let started = Instant::now();
        let outcome = checker.check().await;
        command::collect_orphans();
        metrics.checked(outcome.finding, started.elapsed());
        health.send_modify(|health| health.last_check = Instant::now());
        if outcomes.send(outcome).await.is_err() {
            return;
        }
        // Missed checks (of a machine that slept) are left out.
        next = (next + pause).max(Instant::now());
        pause = settings.interval;
        sleep_until(next.into()).await;
    }
}

/// Takes outcomes in, and writes what follows from them to the Node.
struct Reporter<'a> {
    settings: &'a ReporterSettings,
    node: ReportedNode,
    state: ReporterState,
    metrics: ReporterMetrics,
    health: watch::Sender<ReporterHealth>,
    retry: Backoff,
    /// What went wrong with the last request, so that the log says it once.
    problem: Option<RequestFailure>,
}

impl Reporter<'_> {
    /// Reports until there are no more outcomes, or once where that is asked for.
    async fn run(mut self, mut outcomes: mpsc::Receiver<CheckOutcome>) {
        let mut last_check = Timestamp::now();
        let mut resumed = false;
        loop {
            // Outcomes are taken in while no request may be made again: what is written later is the latest state.
            tokio::select! {
                outcome = outcomes.recv() => {
                    let Some(outcome) = outcome else { return };
                    last_check = Timestamp::now();
                    self.state.observe(&outcome, last_check);
                }
                () = until_retry(&self.retry) => {}
            }
            if self.retry.not_before(Instant::now()).is_some() {
                continue;
            }
            if !resumed {
                resumed = self.resume().await;
                if !resumed {
                    continue;
                }
            }
            if self.state.is_look_due(Instant::now()) && !self.look().await {
                continue;
            }
            self.write_if_due(last_check).await;
            if self.settings.once && self.state.is_good() {
                return;
            }
        }
    }

    /// Carries on from the Node's condition, if it was written in this boot. Answers whether that is known now.
    async fn resume(&mut self) -> bool {
        let found = self.node.read().await;
        let found = match found {
            Ok(found) => found,
            Err(problem) => {
                self.failed(problem);
                return false;
            }
        };
        self.succeeded();
        let boot = Boot::read();
        let is_of_this_boot = |found: &FoundCondition| {
            let boot = boot.as_ref().zip(found.written);
            boot.is_some_and(|(boot, at)| boot.has_seen(&found.node_boot_id, at, Timestamp::now()))
        };
        match found {
            Some(found) if is_of_this_boot(&found) => self.state.resume(found.condition),
            Some(_) => info!(
                node = self.settings.node,
                condition = self.settings.condition_type,
                "the condition may be from before the node's last start, and counts for nothing"
            ),
            None => {}
        }
        true
    }

    /// Reads whether the Node still has what was written. Answers whether that is known now.
    async fn look(&mut self) -> bool {
        let there = match self.node.look().await {
            Ok(found) => found.map(|found| found.condition.status),
            Err(problem) => {
                self.failed(problem);
                return false;
            }
        };
        self.succeeded();
        if there != self.state.published_status() {
            info!(
                node = self.settings.node,
                condition = self.settings.condition_type,
                "the condition does not stand on the Node any more: writing it again"
            );
        }
        self.state.looked(there, Instant::now());
        true
    }

    async fn write_if_due(&mut self, last_check: Timestamp) {
        let Some(condition) = self.state.due(Instant::now()).cloned() else {
            self.metrics.wrote(WriteResult::Skipped);
            return self.settled();
        };
        if let Err(problem) = self.node.write(&condition, last_check).await {
            return self.failed(problem);
        }
        self.metrics.wrote(WriteResult::Success);
        self.succeeded();
        if self.state.published_status() != Some(condition.status) {
            info!(
                node = self.settings.node,
                condition = self.settings.condition_type,
                status = %condition.status,
                reason = condition.reason,
                why = condition.message,
                "reported"
            );
        }
        self.state.published(condition, Instant::now());
        self.settled();
    }

    /// Notes the status that the Node has, if it has one of this process.
    fn settled(&self) {
        if let Some(status) = self.state.published_status() {
            let kind = &self.settings.condition_type;
            self.metrics.set_status(kind, status);
            self.health.send_modify(|health| health.unready = None);
        }
    }

    /// A request has failed: logs it, once for each problem, and has it retried later.
    fn failed(&mut self, problem: RequestFailure) {
        self.metrics.wrote(WriteResult::Error);
        self.retry.failed(PAUSES, Instant::now());
        self.health.send_modify(|health| {
            if let Some(why) = &mut health.unready {
                *why = problem.to_string();
            }
        });
        if self.problem.as_ref() != Some(&problem) {
            warn!("{problem}; trying again");
            self.problem = Some(problem);
        }
    }

    fn succeeded(&mut self) {
        self.retry = Backoff::default();
        if self.problem.take().is_some() {
            info!(
                node = self.settings.node,
                "the API server takes reports again"
            );
        }
    }
}

/// Resolves when something that failed may be tried again; never, where nothing has failed.
async fn until_retry(retry: &Backoff) {
    match retry.due() {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
