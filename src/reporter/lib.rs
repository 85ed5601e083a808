//! The reporter: a sidecar that checks an endpoint on its node and reports the outcome as a condition of the Node, whatever the
//! rules and taints. `state` decides, from outcomes and time, what to write and when; the other files make checks and requests.

mod boot;
mod check;
mod endpoint;
mod metrics;
mod node;
mod outcome;
mod settings;
mod state;

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jiff::Timestamp;
use kube::api::GetParams;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;
use tracing::{info, warn};

use boot::Boot;
use check::{check, command, tls};
use metrics::{ERROR, ReporterHealth, ReporterMetrics, SKIPPED, SUCCESS};
use node::{ReportedNode, RequestFailure};
use nodegate_cluster::process::told_to_stop;
use nodegate_core::backoff::{Backoff, Pauses};
use nodegate_serve::address::{BindAddress, listen};
use nodegate_serve::metric::Description;
use outcome::CheckOutcome;
pub use settings::ReporterArgs;
use settings::ReporterSettings;
use state::{ReportedCondition, ReporterState};

const AGENT: &str = concat!("nodegate-reporter/", env!("CARGO_PKG_VERSION"));
/// The most outcomes that may wait during a write to the API server.
const OUTCOMES: usize = 16;
/// The shortest and the longest pause before a request to the API server is retried.
const PAUSES: Pauses = Pauses::between(Duration::from_millis(500), Duration::from_secs(30));
/// Not alive after this many missed checks, and no sooner than this: while a write to the API server hangs, no outcome is taken.
const MISSED_CHECKS: (u32, Duration) = (3, Duration::from_secs(60));

/// Names, types, labels and help texts of the reporter's metrics.
pub fn metric_descriptions() -> Vec<Description> {
    ReporterMetrics::new().registry.descriptions()
}

/// Checks and reports until SIGTERM or SIGINT; with `REPORT_ONCE`, until the condition is `True`. Fails if it cannot start, or is
/// stopped before a `REPORT_ONCE` success; later failures are logged and retried.
pub async fn run(args: ReporterArgs) -> anyhow::Result<()> {
    args.log.init();
    let settings = ReporterSettings::read(&args)?;
    let shutdown = told_to_stop().context("cannot handle signals")?;
    if settings.endpoint.is_tls() {
        // Without authorities, no check could succeed.
        tls::connector(&settings.verify)?;
    }
    let node = ReportedNode::new(&args, &settings).await?;
    let metrics = ReporterMetrics::at_zero();
    let (health, probe) = watch::channel(ReporterHealth {
        last_check: Instant::now(),
        unready: Some("nothing has been reported yet".to_owned()),
    });
    let patience = (settings.interval + settings.timeout) * MISSED_CHECKS.0;
    let patience = patience.max(MISSED_CHECKS.1);
    if let BindAddress(Some(address)) = settings.metrics {
        match listen(address, "metrics and probes", "METRICS_BIND_ADDRESS").await {
            Ok(listener) => metrics::serve(listener, metrics.clone(), probe, patience),
            // Another reporter on the host network may have taken the address.
            Err(problem) => warn!("going on without metrics and probes: {problem}"),
        }
    }
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
        has_resumed: false,
        may_read: true,
        settings: &settings,
        node,
        metrics: metrics.clone(),
        health: health.clone(),
        retry: Backoff::default(),
        problem: None,
    };
    // A signal drops everything under way: no condition is worth delaying the exit.
    let stopped = tokio::select! {
        biased;
        () = shutdown => true,
        () = check_on_and_on(&settings, &metrics, &health, &sender) => true,
        () = reporter.run(outcomes) => false,
    };
    if stopped && settings.once {
        let condition = &settings.condition_type;
        bail!("stopped before {condition} was True (REPORT_ONCE is set)");
    }
    info!("nodegate reporter stopped");
    Ok(())
}

/// Makes checks until the receiver of the outcomes is dropped: the first at once, since a node may be waiting for it; the second
/// early, by this reporter's phase, so that reporters that start together spread out.
async fn check_on_and_on(
    settings: &ReporterSettings,
    metrics: &ReporterMetrics,
    health: &watch::Sender<ReporterHealth>,
    outcomes: &mpsc::Sender<CheckOutcome>,
) {
    command::adopt_orphans();
    let mut next = Instant::now();
    let first = f64::midpoint(settings.policy.phase, 1.0);
    let mut pause = settings.interval.mul_f64(first);
    loop {
        let started = Instant::now();
        let outcome = check(settings).await;
        command::collect_orphans();
        metrics.checked(outcome.finding, started.elapsed());
        health.send_modify(|health| health.last_check = Instant::now());
        if outcomes.send(outcome).await.is_err() {
            return;
        }
        // Missed checks (on a machine that slept) are skipped.
        next = (next + pause).max(Instant::now());
        pause = settings.interval;
        sleep_until(next.into()).await;
    }
}

/// Processes outcomes and writes the resulting condition to the Node.
struct Reporter<'a> {
    settings: &'a ReporterSettings,
    node: ReportedNode,
    state: ReporterState,
    /// Whether the condition that an earlier process left has been read.
    has_resumed: bool,
    may_read: bool,
    metrics: ReporterMetrics,
    health: watch::Sender<ReporterHealth>,
    retry: Backoff,
    /// The last request's failure, so that the log names it once.
    problem: Option<RequestFailure>,
}

impl Reporter<'_> {
    /// Reports until the outcomes end, or until success if that is configured.
    async fn run(mut self, mut outcomes: mpsc::Receiver<CheckOutcome>) {
        let mut last_check = Timestamp::now();
        loop {
            let retry = self.retry.due();
            // Outcomes are processed while a retry is pending, so that a later write has the latest state.
            tokio::select! {
                outcome = outcomes.recv() => {
                    let Some(outcome) = outcome else { return };
                    last_check = Timestamp::now();
                    self.state.observe(&outcome, last_check);
                }
                () = sleep_until(retry.unwrap_or_else(Instant::now).into()), if retry.is_some() => {}
            }
            if self.retry.not_before(Instant::now()).is_some() {
                continue;
            }
            match self.report(last_check).await {
                // This also ends the retry of a write that a later check has made unnecessary.
                Ok(()) => self.retry = Backoff::default(),
                Err(problem) => self.failed(problem),
            }
            if self.settings.once && self.state.is_good() {
                return;
            }
        }
    }

    /// Makes the requests that are due: reads of the Node, and the write of its condition.
    async fn report(&mut self, last_check: Timestamp) -> Result<(), RequestFailure> {
        let read = if !self.has_resumed {
            self.resume().await
        } else if self.may_read && self.state.is_reread_due(Instant::now()) {
            self.reread().await
        } else {
            Ok(())
        };
        let refusal = match read {
            Err(problem) if problem.is_not_granted() => Some(problem),
            read => read.map(|()| None)?,
        };
        self.write_if_due(last_check).await?;
        // Where not even a write was granted yet, the permissions may be on their way.
        if let Some(problem) = refusal.filter(|_| self.state.published_status().is_some()) {
            warn!(
                "{problem}; going on without: transition time and thresholds begin anew, and a condition that somebody removes comes \
                 back only with the next heartbeat"
            );
            (self.has_resumed, self.may_read) = (true, false);
        }
        Ok(())
    }

    /// Resumes from the Node's condition, if it was written during this boot.
    async fn resume(&mut self) -> Result<(), RequestFailure> {
        let node = self.node.read(&GetParams::default()).await?;
        self.succeeded();
        if let Some(found) = node.condition(&self.settings.condition_type) {
            let now = Timestamp::now();
            let written = Boot::read().zip(found.heartbeat);
            if written.is_some_and(|(boot, at)| boot.has_seen(&node.boot_id, at, now)) {
                self.state.resume(ReportedCondition {
                    status: found.status,
                    reason: found.reason.clone(),
                    message: found.message.clone(),
                    transition: found.transition.unwrap_or(now),
                });
            } else {
                info!(
                    node = self.settings.node,
                    condition = self.settings.condition_type,
                    "the condition may be from before the node's last start, and counts for nothing"
                );
            }
        }
        self.has_resumed = true;
        Ok(())
    }

    async fn reread(&mut self) -> Result<(), RequestFailure> {
        let node = self.node.read(&GetParams::at("0")).await?;
        self.succeeded();
        let there = node.condition(&self.settings.condition_type);
        let there = there.map(|condition| condition.status);
        if there != self.state.published_status() {
            info!(
                node = self.settings.node,
                condition = self.settings.condition_type,
                "the condition is no longer on the Node: writing it again"
            );
        }
        self.state.reread(there, Instant::now());
        Ok(())
    }

    async fn write_if_due(&mut self, last_check: Timestamp) -> Result<(), RequestFailure> {
        let Some(condition) = self.state.due(Instant::now()).cloned() else {
            self.metrics.wrote(SKIPPED);
            return Ok(());
        };
        self.node.write(&condition, last_check).await?;
        self.metrics.wrote(SUCCESS);
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
        let kind = &self.settings.condition_type;
        self.metrics.set_status(kind, condition.status);
        self.health.send_modify(|health| health.unready = None);
        self.state.published(condition, Instant::now());
        Ok(())
    }

    /// Logs a failed request, once for each problem, and schedules a retry.
    fn failed(&mut self, problem: RequestFailure) {
        self.metrics.wrote(ERROR);
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
        if self.problem.take().is_some() {
            info!(
                node = self.settings.node,
                "the API server accepts reports again"
            );
        }
    }
}
