//! The protections that can be taken out, as in `docs/testing.md`.

/// A protection of the engine.
pub(crate) struct Protection {
    /// The bug that is there once it is taken out.
    pub(crate) bug: &'static str,
    /// The law that breaks then.
    pub(crate) law: &'static str,
    /// The scenario in which it does.
    pub(crate) scenario: &'static str,
    pub(crate) edits: &'static [Edit],
}

/// How it is taken out: a file, what is there exactly once (lines may be broken elsewhere), and what to put there.
///
/// What is put there is an expression in place of another one; or everything, with `TAKEN_OUT` where it is decided.
pub(crate) type Edit = (&'static str, &'static str, &'static str);

const GATING: &str = "every gating is justified";
const REMOVAL: &str = "every removal is justified";
const BOOTSTRAP: &str = "a completed bootstrap is never gated again";
const END: &str = "at the end everything is as the rules say";
const OTHERS: &str = "what is others' stays as it is";
const GUARD: &str = "a guarded rule gates no more nodes than its rates allow";
const FIRST: &str = "a rule that comes into force gates no more nodes in use than its limit";
const DELETION: &str = "a deleted rule goes when its nodes are clean";
const CLAIMS: &str = "no claim of a node is deleted that was ever released";
const VAIN: &str = "what does not help is not repeated for ever";
const WRITES: &str = "writes are bounded";
const WORKLOAD: &str = "a joining node runs no workload";
const LEADER: &str = "only a leader writes, and one thing at a time";

pub(crate) const PROTECTIONS: &[Protection] = &[
    Protection {
        bug: "no evidence is ever stale",
        law: GATING,
        scenario: "rule-deleted",
        edits: &[(
            "src/engine/freshness.rs",
            "now.saturating_duration_since(as_of) > MAX_AGE || required.is_some_and(|required| as_of < required)",
            "false",
        )],
    },
    Protection {
        bug: "any version proves that a view is current",
        law: GATING,
        scenario: "heartbeat",
        edits: &[("src/engine/freshness.rs", "*version <= self.shown", "true")],
    },
    Protection {
        bug: "DaemonSets that are not listed yet count as absent",
        law: GATING,
        scenario: "named",
        edits: &[
            (
                "src/plan/state.rs",
                "self.named(it).is_some_and(|named| !named.is_seen)",
                "false",
            ),
            (
                "src/condition/facts.rs",
                "if !named.is_seen {",
                "if !named.is_seen && !TAKEN_OUT {",
            ),
        ],
    },
    Protection {
        bug: "a process that stood still trusts its view",
        law: GATING,
        scenario: "several-conditions",
        edits: &[("src/engine/clock.rs", "waited > STALL || was_set", "false")],
    },
    Protection {
        bug: "a clock that is set goes unnoticed",
        law: GATING,
        scenario: "several-conditions",
        edits: &[("src/engine/clock.rs", "step.abs() > STEP", "false")],
    },
    Protection {
        bug: "grace periods are ignored",
        law: GATING,
        scenario: "long-patience",
        edits: &[(
            "src/plan/patience.rs",
            "Some(until) if now < until =>",
            "Some(until) if now < until && !TAKEN_OUT =>",
        )],
    },
    Protection {
        bug: "fields that another definition dropped count as never set",
        law: GATING,
        scenario: "pruned",
        edits: &[(
            "src/rule/compile.rs",
            "pruned || ours.is_some_and(|ours| ours.suspend)",
            "ours.is_some_and(|ours| ours.suspend)",
        )],
    },
    Protection {
        bug: "`allOf` means `anyOf`",
        law: REMOVAL,
        scenario: "several-conditions",
        edits: &[(
            "src/plan/outcome.rs",
            "findings.iter().all(ConditionOutcome::is_met)",
            "findings.iter().any(ConditionOutcome::is_met)",
        )],
    },
    Protection {
        bug: "silent reporters are believed",
        law: REMOVAL,
        scenario: "heartbeat",
        edits: &[(
            "src/condition/trust.rs",
            "observations.is_unproven(kind, &(oldest..=newest))",
            "false",
        )],
    },
    Protection {
        bug: "a condition's earlier heartbeats are ignored",
        law: REMOVAL,
        scenario: "late-heartbeat",
        edits: &[(
            "src/condition/observations.rs",
            "let last_write = last_write(node, kind)",
            "let last_write = if TAKEN_OUT { None } else { last_write(node, kind) }",
        )],
    },
    Protection {
        bug: "a DaemonSet without a pod counts as scheduled",
        law: REMOVAL,
        scenario: "room-first",
        edits: &[(
            "src/condition/daemon_sets.rs",
            "None => missing.push(&daemon_set.key),",
            "None => if !TAKEN_OUT { missing.push(&daemon_set.key) },",
        )],
    },
    Protection {
        bug: "a pod counts as scheduled only once it is Ready",
        law: END,
        scenario: "room-first",
        edits: &[(
            "src/condition/daemon_sets.rs",
            "as_ready && best.1 != PodEvidence::Ready",
            "best.1 != PodEvidence::Ready",
        )],
    },
    Protection {
        bug: "`minReadySeconds` is ignored",
        law: REMOVAL,
        scenario: "available",
        edits: &[(
            "src/condition/pods.rs",
            "seconds > 0 && facts.now < until",
            "false",
        )],
    },
    Protection {
        bug: "a pod older than its Node counts as Ready",
        law: REMOVAL,
        scenario: "re-registration-late-pods",
        edits: &[("src/condition/pods.rs", "since < *created", "false")],
    },
    Protection {
        bug: "an earlier node's `CSINode` counts",
        law: REMOVAL,
        scenario: "re-registration-csi",
        edits: &[("src/condition/csi.rs", "csi_node.is_of(&node.uid)", "true")],
    },
    Protection {
        bug: "conditions from before a reboot count",
        law: REMOVAL,
        scenario: "regate",
        edits: &[(
            "src/condition/trust.rs",
            "!observations.is_written_in_this_boot(kind)",
            "false",
        )],
    },
    Protection {
        bug: "the controller's clock dates a reboot",
        law: REMOVAL,
        scenario: "regate-components",
        edits: &[(
            "src/condition/observations.rs",
            "boot.older.max(wrote)",
            "boot.older",
        )],
    },
    Protection {
        bug: "pods from before a reboot count as Ready",
        law: REMOVAL,
        scenario: "regate-late-pods",
        edits: &[(
            "src/condition/pods.rs",
            "facts.trust.distrusts_until(OLD_PODS, facts.now)",
            "None",
        )],
    },
    Protection {
        bug: "drivers from before a reboot count as registered",
        law: REMOVAL,
        scenario: "regate-csi",
        edits: &[(
            "src/condition/csi.rs",
            "facts.observations.is_registered_in_this_boot(driver)",
            "true",
        )],
    },
    Protection {
        bug: "a patch does not test the UID",
        law: REMOVAL,
        scenario: "re-registration-in-flight",
        edits: &[(
            "src/engine/patch.rs",
            "Operations::on(&node.uid)",
            "Operations(Vec::new())",
        )],
    },
    Protection {
        bug: "a successor of a deleted rule is ignored",
        law: REMOVAL,
        scenario: "succession",
        edits: &[(
            "src/plan/clean_up.rs",
            "self.has_pending_successor(key, effect)",
            "false",
        )],
    },
    Protection {
        bug: "an earlier rule without its finalizer is ignored",
        law: REMOVAL,
        scenario: "conflict",
        edits: &[(
            "src/plan/taint.rs",
            "self.has_pending_governor(rule, spec)",
            "false",
        )],
    },
    Protection {
        bug: "labels that come late are taken for there from the start",
        law: REMOVAL,
        scenario: "introduced",
        edits: &[("src/plan/taint.rs", "!self.node.is_introduced()", "false")],
    },
    Protection {
        bug: "a taint that stays excuses a named DaemonSet",
        law: REMOVAL,
        scenario: "staying-taints",
        edits: &[(
            "src/condition/daemon_sets.rs",
            "placement == Placement::NotMeant",
            "placement != Placement::Meant",
        )],
    },
    Protection {
        bug: "temporary taints count as permanent",
        law: REMOVAL,
        scenario: "passing-taints",
        edits: &[(
            "src/condition/placement.rs",
            "self.configured.iter().any(fits)",
            "false",
        )],
    },
    Protection {
        bug: "a DaemonSet with a live pod is not waited for",
        law: REMOVAL,
        scenario: "live-pod",
        edits: &[("src/condition/placement.rs", "is_pod()", "false")],
    },
    Protection {
        bug: "a forged deadline is believed",
        law: REMOVAL,
        scenario: "release-forged",
        edits: &[(
            "src/plan/deadlines.rs",
            "repair.action == RepairAction::Release",
            "false",
        )],
    },
    Protection {
        bug: "a late node in maintenance is released",
        law: REMOVAL,
        scenario: "release-maintenance",
        edits: &[(
            "src/repair/verdict.rs",
            "if node.is_in_maintenance() =>",
            "if node.is_in_maintenance() && !TAKEN_OUT =>",
        )],
    },
    Protection {
        bug: "recorded completions are ignored",
        law: BOOTSTRAP,
        scenario: "adoption",
        edits: &[(
            "src/rule/ownership.rs",
            "matches!(self, Self::Done | Self::Unstamped)",
            "false",
        )],
    },
    Protection {
        bug: "a completion counts for every boot",
        law: END,
        scenario: "regate",
        edits: &[(
            "src/rule/ownership.rs",
            "*value.boot_id != *node.boot_id && !value.boot_id.is_empty()",
            "false",
        )],
    },
    Protection {
        bug: "a completion outlasts a maintenance",
        law: END,
        scenario: "regate-maintenance",
        edits: &[(
            "src/rule/ownership.rs",
            "value.maintenance && !is_in_maintenance",
            "false",
        )],
    },
    Protection {
        bug: "a maintenance is not recorded",
        law: END,
        scenario: "regate-maintenance",
        edits: &[(
            "src/rule/ownership.rs",
            "spec.ours.regate_on.contains(&RegateOn::Maintenance) && node.is_in_maintenance()",
            "false",
        )],
    },
    Protection {
        bug: "a patch does not test the taints",
        law: OTHERS,
        scenario: "foreign-writer",
        edits: &[(
            "src/engine/patch.rs",
            r#"operations.replace_list(&["spec", "taints"], &node.taints, &taints)"#,
            r#"operations.add(&["spec", "taints"], json!(taints))"#,
        )],
    },
    Protection {
        bug: "a taint's effect is ignored",
        law: OTHERS,
        scenario: "another-effect",
        edits: &[(
            "src/object/taint.rs",
            "self.key == key && self.effect == effect.as_str()",
            "self.key == key",
        )],
    },
    Protection {
        bug: "an annotation of an unknown rule is believed",
        law: OTHERS,
        scenario: "forged",
        edits: &[(
            "src/plan/clean_up.rs",
            "set.remembers(owner) || is_ours()",
            "true",
        )],
    },
    Protection {
        bug: "a node that another controller tainted counts as joining",
        law: GUARD,
        scenario: "gated-by-another",
        edits: &[(
            "src/plan/patience.rs",
            "if self.tainted && !self.owners.is_empty() {",
            "if TAKEN_OUT && self.tainted && self.owners.is_empty() { return true; }
             if self.tainted && !self.owners.is_empty() {",
        )],
    },
    Protection {
        bug: "a node without a history counts as joining",
        law: GUARD,
        scenario: "zone-outage",
        edits: &[(
            "src/plan/patience.rs",
            "None => is_new(self.joined, now)",
            "None => TAKEN_OUT || is_new(self.joined, now)",
        )],
    },
    Protection {
        bug: "a disruption limit's bucket is always full",
        law: GUARD,
        scenario: "zone-outage",
        edits: &[(
            "src/guard/grants.rs",
            "self.tokens.take();",
            "if !TAKEN_OUT { self.tokens.take(); }",
        )],
    },
    Protection {
        bug: "a zone without a ready node is gated further",
        law: GUARD,
        scenario: "bad-version",
        edits: &[(
            "src/guard/grants.rs",
            "!zones.is_empty() && zones.values().all(|tally| tally.met == 0)",
            "false",
        )],
    },
    Protection {
        bug: "a small zone that is mostly unready is gated further",
        law: GUARD,
        scenario: "partial-outage",
        edits: &[(
            "src/guard/limits.rs",
            "ZoneState::PartialDisruption => 0.0,",
            "ZoneState::PartialDisruption => if TAKEN_OUT { self.eviction_rate } else { 0.0 },",
        )],
    },
    Protection {
        bug: "a node in maintenance counts as unmet, and is gated",
        law: GUARD,
        scenario: "maintenance",
        edits: &[(
            "src/engine/rules/gating.rs",
            "*member == Member::Met || !node.is_in_maintenance()",
            "true",
        )],
    },
    Protection {
        bug: "`maxFirstGated` is ignored",
        law: FIRST,
        scenario: "first-blow",
        edits: &[(
            "src/engine/rules/first_gating.rs",
            "would_gate.exceeds(limit)",
            "would_gate.exceeds(limit) && !TAKEN_OUT",
        )],
    },
    Protection {
        bug: "a rule that is held back is never evaluated again",
        law: FIRST,
        scenario: "first-blow",
        edits: &[(
            "src/engine/rules/first_gating.rs",
            "if let Self::Open(open) = self {",
            "if let Self::Open(open) = self && !TAKEN_OUT {",
        )],
    },
    Protection {
        bug: "a deleted rule cleans nothing up",
        law: DELETION,
        scenario: "rule-deleted",
        edits: &[(
            "src/engine/rules/finalizers.rs",
            "is_clean(work, cache, nodes)",
            "true",
        )],
    },
    Protection {
        bug: "releases are forgotten",
        law: CLAIMS,
        scenario: "replace-none-released",
        edits: &[(
            "src/repair/verdict.rs",
            "rule.leaves_alone(node.created) || keys.any(|key| node.annotation(key).is_some())",
            "false",
        )],
    },
    Protection {
        bug: "repairs that did not help are repeated",
        law: VAIN,
        scenario: "replace-in-vain",
        edits: &[(
            "src/repair/setback.rs",
            "!self.is_about(condition, pool) || missed == 0",
            "!self.is_about(condition, pool) || missed == 0 || TAKEN_OUT",
        )],
    },
    Protection {
        bug: "a zone in which every joining node is late is repaired",
        law: CLAIMS,
        scenario: "replace-zone",
        edits: &[(
            "src/repair/health.rs",
            "joining == late && *late > FEW",
            "joining == late && *late > FEW && !TAKEN_OUT",
        )],
    },
    Protection {
        bug: "many late nodes are repaired",
        law: CLAIMS,
        scenario: "replace-blocked",
        edits: &[("src/repair/verdict.rs", "count.exceeds(limit)", "false")],
    },
    Protection {
        bug: "a change that is undone is repeated at once",
        law: WRITES,
        scenario: "undone",
        edits: &[(
            "src/engine/attempt.rs",
            "self.repeats >= TOLERATED",
            "false",
        )],
    },
    Protection {
        bug: "a refused write is repeated at once",
        law: WRITES,
        scenario: "re-registration-components",
        edits: &[(
            "src/engine/attempt.rs",
            "self.backoff.failed(pauses, now);",
            "if !TAKEN_OUT { self.backoff.failed(pauses, now); }",
        )],
    },
    Protection {
        bug: "refused Events slow all writes",
        law: WORKLOAD,
        scenario: "bootstrap",
        edits: &[(
            "src/engine/pacer/mod.rs",
            "let of_class = self.limit(class).not_before(now);",
            "let of_class = if TAKEN_OUT {
                self.limits.iter().filter_map(|it| it.not_before(now)).max()
            } else {
                self.limit(class).not_before(now)
            };",
        )],
    },
    Protection {
        bug: "writes under way are ignored",
        law: LEADER,
        scenario: "bootstrap",
        edits: &[(
            "src/engine/machine.rs",
            "if work.write.is_under_way() {",
            "if work.write.is_under_way() && !TAKEN_OUT {",
        )],
    },
    Protection {
        bug: "an order to stop is ignored",
        law: LEADER,
        scenario: "rolling-update",
        edits: &[(
            "src/engine/machine.rs",
            "self.is_stopping = true;",
            "self.is_stopping = !TAKEN_OUT;",
        )],
    },
    Protection {
        bug: "a lost lease is ignored",
        law: LEADER,
        scenario: "busy-leader",
        edits: &[(
            "src/engine/election.rs",
            "Renewal::Taken => return Err(Loss::Taken),",
            "Renewal::Taken => if !TAKEN_OUT { return Err(Loss::Taken) },",
        )],
    },
    Protection {
        bug: "a lease never runs out",
        law: LEADER,
        scenario: "busy-leader",
        edits: &[(
            "src/engine/election.rs",
            "self.renewed + RENEW_DEADLINE",
            "self.renewed + RENEW_DEADLINE * 1000",
        )],
    },
];
