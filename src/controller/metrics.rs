//! Prometheus metrics: the Node Readiness Controller's under the same names, and more (`nodegate_*`). No label has a node's name.
//! These change as things happen (`counts`); gauges are updated only for a scrape (`gauges`), so that they cost nothing in between.

use nodegate_serve::metric::Registry;
use nodegate_serve::metrics;

/// Times of whole starts.
const BOOTSTRAP_BUCKETS: &[f64] = &[1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0];
const LATENCY_BUCKETS: &[f64] = &[
    0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// The upstream project's, although an evaluation takes only microseconds here. Sum and count give the mean.
const EVALUATION_BUCKETS: &[f64] = prometheus::DEFAULT_BUCKETS;
const WRITE_BUCKETS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

metrics! {
    Metrics in Registry::with_process();
    IntCounterVec {
        startup_last: "nodegate_startup_last_total" ["rule", "condition"],
            "Nodes released for the first time, by the condition that was met last.";
        api_conflicts: "node_readiness_api_conflicts_total" ["rule", "operation"],
            "Taint changes that were refused because the node had changed, and decided again.";
        taint_operations: "node_readiness_taint_operations_total" ["rule", "operation"], "Taints added and removed.";
        failures: "node_readiness_failures_total" ["rule", "reason"], "Failures to apply a rule to a node.";
        bootstrap_completed: "node_readiness_bootstrap_completed_total" ["rule"],
            "Nodes whose bootstrap under the rule has been completed.";
        condition_failures: "node_readiness_condition_failures_total" ["rule", "condition"],
            "Evaluations of a node that found a condition of a rule unmet.";
        turned_unmet: "nodegate_condition_turned_unmet_total" ["rule", "condition"],
            "How often a condition of a rule changed from met to unmet on a node.";
        repairs: "nodegate_repairs_total" ["rule", "action"], "Repairs of nodes that were not ready in time, by action.";
        repairs_blocked: "nodegate_repairs_blocked_total" ["rule"], "Repairs held back because too many nodes were unhealthy.";
        repair_failures: "nodegate_repair_failures_total" ["rule"], "Repairs that the API server refused.";
        write_conflicts: "nodegate_write_conflicts_total" ["object"], "Writes refused because the object had changed.";
        write_failures: "nodegate_write_failures_total" ["object", "reason"], "Writes that failed, except for conflicts.";
        taints_undone: "nodegate_taints_undone_total" ["rule"], "Taint changes of a rule that another component has undone.";
        status_unchanged: "nodegate_status_writes_spared_total" [], "Status writes skipped because nothing had changed.";
        status_coalesced: "nodegate_status_changes_coalesced_total" [], "Status changes that were merged into one write.";
        events_dropped: "nodegate_events_dropped_total" [], "Events dropped under overload or refused by the API server.";
        watch_failures: "nodegate_watch_failures_total" ["resource"], "Interruptions of a watch.";
        watch_restarts: "nodegate_watch_restarts_total" ["resource"], "How often a watch had to list everything again.";
    }
    HistogramVec {
        enforcement_latency: "node_readiness_enforcement_latency_seconds" ["rule", "operation"] in LATENCY_BUCKETS,
            "Time from the latest transition among a rule's conditions to the taint change.";
        bootstrap_hold: "node_readiness_bootstrap_hold_duration_seconds" ["rule", "taint_origin"] in BOOTSTRAP_BUCKETS,
            "Time for which a rule's taint kept pods off a node until its bootstrap was completed, added by the controller or \
             adopted.";
        startup_stage: "nodegate_startup_stage_seconds" ["rule", "condition"] in BOOTSTRAP_BUCKETS,
            "Time from when both node and rule existed until a condition was first met, for nodes released for the first \
             time.";
        startup_component: "nodegate_startup_component_seconds" ["component"] in BOOTSTRAP_BUCKETS,
            "Time from when both node and rule existed until the last condition was met, for nodes released for the first time, \
             by what was waited for last: a DaemonSet, a CSI driver or a condition. At most 64 of them; the rest are \"other\".";
        evaluation_duration: "node_readiness_evaluation_duration_seconds" ["rule"] in EVALUATION_BUCKETS,
            "Time an evaluation of a rule on a node takes.";
        bootstrap_duration: "node_readiness_bootstrap_duration_seconds" ["rule"] in BOOTSTRAP_BUCKETS,
            "Time from when both node and rule existed to the completion of the bootstrap.";
        reconciliation_latency: "node_readiness_reconciliation_latency_seconds" ["rule", "operation"] in LATENCY_BUCKETS,
            "Time from the latest transition among a rule's conditions to the taint change.";
        write_duration: "nodegate_write_duration_seconds" ["object"] in WRITE_BUCKETS, "Time a write takes.";
    }
    GaugeVec {
        last_reconciliation: "node_readiness_rule_last_reconciliation_timestamp_seconds" ["rule"],
            "When a rule was last evaluated on a node.";
        clock_offset: "nodegate_clock_offset_seconds" [],
            "How far this machine's clock was ahead of the API server's at the last answer to a write or about the Lease, to about a second.";
    }
}
