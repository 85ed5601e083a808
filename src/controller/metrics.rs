//! Prometheus metrics: those of the Node Readiness Controller under the same names, and more for operators (`nodegate_*`). No
//! label has a node's name.
//!
//! Counters and histograms change as things happen (`counts`). Gauges of the current state are updated only for a scrape
//! (`gauges`), so that they cost nothing in between.

use std::sync::{Arc, Mutex, PoisonError};

use axum::response::Response;
use prometheus::{GaugeVec, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts};

use crate::metric::{Description, Registry};
#[cfg(target_os = "linux")]
use crate::process::ProcessMetrics;

/// Buckets of `node_readiness_bootstrap_duration_seconds`.
const BOOTSTRAP_BUCKETS: &[f64] = &[1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0];
/// Buckets of `node_readiness_reconciliation_latency_seconds`.
const LATENCY_BUCKETS: &[f64] = &[
    0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// Buckets of `node_readiness_evaluation_duration_seconds`: the upstream project's, although an evaluation takes only
/// microseconds here. Sum and count give the mean.
const EVALUATION_BUCKETS: &[f64] = prometheus::DEFAULT_BUCKETS;
/// Buckets of `nodegate_write_duration_seconds`.
const WRITE_BUCKETS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// Every metric. [`Metrics::new`] says what each one measures.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Held while the gauges are updated, so that no scrape reads a partial update.
    pub surveyed: Arc<Mutex<()>>,
    pub rules: IntGauge,
    pub rules_by_kind: IntGaugeVec,
    pub rule_matched_nodes: IntGaugeVec,
    pub blocked_nodes: IntGaugeVec,
    pub enforcement_latency: HistogramVec,
    pub bootstrap_hold: HistogramVec,
    pub startup_stage: HistogramVec,
    pub startup_last: IntCounterVec,
    pub api_conflicts: IntCounterVec,
    pub taint_operations: IntCounterVec,
    pub evaluation_duration: HistogramVec,
    pub failures: IntCounterVec,
    pub bootstrap_completed: IntCounterVec,
    pub bootstrap_duration: HistogramVec,
    pub reconciliation_latency: HistogramVec,
    pub nodes_by_state: IntGaugeVec,
    pub condition_failures: IntCounterVec,
    pub turned_unmet: IntCounterVec,
    pub last_reconciliation: GaugeVec,
    pub rule_nodes: IntGaugeVec,
    pub longest_held: GaugeVec,
    pub synthesized_conditions: IntGaugeVec,
    pub shut_out: IntGaugeVec,
    pub outside_namespaces: IntGaugeVec,
    pub repairs: IntCounterVec,
    pub repairs_blocked: IntCounterVec,
    pub repair_failures: IntCounterVec,
    pub disruption_waiting: IntGaugeVec,
    pub disruption_zone_state: IntGaugeVec,
    pub queue_depth: IntGauge,
    pub writes_in_flight: IntGauge,
    pub write_duration: HistogramVec,
    pub write_conflicts: IntCounterVec,
    pub write_failures: IntCounterVec,
    pub write_limit: IntGauge,
    pub taints_undone: IntCounterVec,
    pub taints_contended: IntGaugeVec,
    pub status_unchanged: IntCounter,
    pub status_coalesced: IntCounter,
    pub events_dropped: IntCounter,
    pub watch_failures: IntCounterVec,
    pub last_looks: IntCounterVec,
    pub watch_restarts: IntCounterVec,
    pub cache_objects: IntGaugeVec,
    pub unreadable_objects: IntGaugeVec,
    pub leader: IntGauge,
    pub suspended: IntGauge,
}

impl Metrics {
    /// Registers all metrics, at zero.
    #[allow(
        clippy::too_many_lines,
        reason = "a list of names, help texts and labels reads best in one piece"
    )]
    pub(crate) fn new() -> Self {
        let to = Registry::default();
        #[cfg(target_os = "linux")]
        to.register(Box::new(ProcessMetrics::new()));
        to.add_build_info("node_readiness_build_info", "Version of the controller.");
        Self {
            rules: to.add(IntGauge::new(
                "node_readiness_rules_total",
                "Number of rules.",
            )),
            rules_by_kind: to.gauges(
                "node_readiness_rules",
                "Accepted rules, by mode and whether they are dry runs.",
                &["enforcement_mode", "dry_run"],
            ),
            rule_matched_nodes: to.gauges(
                "node_readiness_rule_matched_nodes",
                "Nodes that a rule selects.",
                &["rule"],
            ),
            blocked_nodes: to.gauges(
                "node_readiness_blocked_nodes",
                "Nodes that a rule holds because a condition is unmet; with anyOf, only while none is met.",
                &["rule", "condition"],
            ),
            enforcement_latency: to.histograms(
                "node_readiness_enforcement_latency_seconds",
                "Time from the latest transition among a rule's conditions to the taint change.",
                &["rule", "operation"],
                LATENCY_BUCKETS,
            ),
            bootstrap_hold: to.histograms(
                "node_readiness_bootstrap_hold_duration_seconds",
                "Time for which a rule's taint kept pods off a node until its bootstrap was completed, added by the controller or \
                 adopted.",
                &["rule", "taint_origin"],
                BOOTSTRAP_BUCKETS,
            ),
            startup_stage: to.histograms(
                "nodegate_startup_stage_seconds",
                "Time from when both node and rule existed until a condition was first met, for nodes that opened for the first time.",
                &["rule", "condition"],
                BOOTSTRAP_BUCKETS,
            ),
            startup_last: to.counters(
                "nodegate_startup_last_total",
                "Nodes that opened for the first time, by the condition that was met last.",
                &["rule", "condition"],
            ),
            api_conflicts: to.counters(
                "node_readiness_api_conflicts_total",
                "Taint changes that were refused because the node had changed, and decided again.",
                &["rule", "operation"],
            ),
            taint_operations: to.counters(
                "node_readiness_taint_operations_total",
                "Taints added and lifted.",
                &["rule", "operation"],
            ),
            evaluation_duration: to.histograms(
                "node_readiness_evaluation_duration_seconds",
                "Time an evaluation of a rule on a node takes.",
                &["rule"],
                EVALUATION_BUCKETS,
            ),
            failures: to.counters(
                "node_readiness_failures_total",
                "Failures to apply a rule to a node.",
                &["rule", "reason"],
            ),
            bootstrap_completed: to.counters(
                "node_readiness_bootstrap_completed_total",
                "Nodes whose bootstrap under the rule has been completed.",
                &["rule"],
            ),
            bootstrap_duration: to.histograms(
                "node_readiness_bootstrap_duration_seconds",
                "Time from when both node and rule existed to the completion of the bootstrap.",
                &["rule"],
                BOOTSTRAP_BUCKETS,
            ),
            reconciliation_latency: to.histograms(
                "node_readiness_reconciliation_latency_seconds",
                "Time from the latest transition among a rule's conditions to the taint change.",
                &["rule", "operation"],
                LATENCY_BUCKETS,
            ),
            nodes_by_state: to.gauges(
                "node_readiness_nodes_by_state",
                "Nodes of a rule by state.",
                &["rule", "state"],
            ),
            condition_failures: to.counters(
                "node_readiness_condition_failures_total",
                "Evaluations of a node that found a condition of a rule unmet.",
                &["rule", "condition"],
            ),
            turned_unmet: to.counters(
                "nodegate_condition_turned_unmet_total",
                "How often a condition of a rule changed from met to unmet on a node.",
                &["rule", "condition"],
            ),
            last_reconciliation: to.add(GaugeVec::new(
                Opts::new(
                    "node_readiness_rule_last_reconciliation_timestamp_seconds",
                    "When a rule was last evaluated on a node.",
                ),
                &["rule"],
            )),
            rule_nodes: to.gauges(
                "node_readiness_rule_nodes",
                "Nodes that a rule holds, and nodes that it has released.",
                &["rule", "state"],
            ),
            longest_held: to.add(GaugeVec::new(
                Opts::new(
                    "nodegate_rule_longest_held_seconds",
                    "How long the rule has held the node that it has held longest.",
                ),
                &["rule"],
            )),
            synthesized_conditions: to.gauges(
                "nodegate_synthesized_conditions",
                "Nodes by class, synthesized condition and status.",
                &["class", "type", "status"],
            ),
            disruption_waiting: to.gauges(
                "nodegate_disruption_waiting",
                "Nodes that a rule's disruption limit holds back.",
                &["rule", "zone"],
            ),
            disruption_zone_state: to.gauges(
                "nodegate_disruption_zone_state",
                "1 for the state of a zone under a rule's disruption limit.",
                &["rule", "zone", "state"],
            ),
            shut_out: to.gauges(
                "nodegate_rule_daemon_sets_shut_out",
                "DaemonSets that a rule waits for, by name or class, and that do not tolerate its taint.",
                &["rule"],
            ),
            outside_namespaces: to.gauges(
                "nodegate_rule_daemon_sets_outside_namespaces",
                "Labelled DaemonSets that a rule does not wait for because their class does not cover their namespace.",
                &["rule"],
            ),
            repairs: to.counters(
                "nodegate_repairs_total",
                "Repairs of nodes that were not ready in time, by action.",
                &["rule", "action"],
            ),
            repairs_blocked: to.counters(
                "nodegate_repairs_blocked_total",
                "Repairs held back because too many nodes were unhealthy.",
                &["rule"],
            ),
            repair_failures: to.counters(
                "nodegate_repair_failures_total",
                "Repairs that the API server refused.",
                &["rule"],
            ),
            queue_depth: to.add(IntGauge::new(
                "nodegate_queue_depth",
                "Nodes that wait to be evaluated.",
            )),
            writes_in_flight: to.add(IntGauge::new(
                "nodegate_writes_in_flight",
                "Writes in flight.",
            )),
            write_duration: to.histograms(
                "nodegate_write_duration_seconds",
                "Time a write takes.",
                &["object"],
                WRITE_BUCKETS,
            ),
            write_conflicts: to.counters(
                "nodegate_write_conflicts_total",
                "Writes refused because the object had changed.",
                &["object"],
            ),
            write_failures: to.counters(
                "nodegate_write_failures_total",
                "Writes that failed, except for conflicts.",
                &["object", "reason"],
            ),
            write_limit: to.add(IntGauge::new(
                "nodegate_write_limit",
                "How many nodes may be written at a time: fewer while the API server is overloaded.",
            )),
            taints_undone: to.counters(
                "nodegate_taints_undone_total",
                "Taint changes of a rule that another component has undone.",
                &["rule"],
            ),
            taints_contended: to.gauges(
                "nodegate_taints_contended",
                "Taints of a rule that another component keeps changing back on a node.",
                &["rule"],
            ),
            status_unchanged: to.add(IntCounter::new(
                "nodegate_status_writes_spared_total",
                "Status writes skipped because nothing had changed.",
            )),
            status_coalesced: to.add(IntCounter::new(
                "nodegate_status_changes_coalesced_total",
                "Status changes that were merged into one write.",
            )),
            events_dropped: to.add(IntCounter::new(
                "nodegate_events_dropped_total",
                "Events dropped under overload or refused by the API server.",
            )),
            last_looks: to.counters(
                "nodegate_last_looks_total",
                "Nodes that were read again before a decision, because a watch was silent or interrupted, this instance had only \
                 just begun to lead, or a heartbeat was missed; by result.",
                &["result"],
            ),
            watch_failures: to.counters(
                "nodegate_watch_failures_total",
                "Interruptions of a watch.",
                &["resource"],
            ),
            watch_restarts: to.counters(
                "nodegate_watch_restarts_total",
                "How often a watch had to list everything again.",
                &["resource"],
            ),
            cache_objects: to.gauges("nodegate_cache_objects", "Objects in the cache.", &["kind"]),
            unreadable_objects: to.gauges(
                "nodegate_unreadable_objects",
                "Objects that cannot be parsed.",
                &["kind"],
            ),
            leader: to.add(IntGauge::new(
                "nodegate_leader",
                "1 while this instance leads.",
            )),
            suspended: to.add(IntGauge::new(
                "nodegate_suspended",
                "1 while all rules are suspended, by flag or by the annotation of the Lease.",
            )),
            registry: to,
            surveyed: Arc::default(),
        }
    }

    /// Names, types, labels and help texts of all metrics.
    pub(crate) fn descriptions(&self) -> Vec<Description> {
        self.registry.described()
    }

    pub(crate) fn exposition(&self) -> Response {
        let _whole = self.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        self.registry.exposition()
    }
}
