//! The protections that can be taken out, as in `docs/how-it-works.md`.

/// A protection of the engine.
pub(crate) struct Protection {
    /// What seems to be so once it is taken out.
    pub(crate) as_if: &'static str,
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
        as_if: "nothing that was seen is ever stale",
        law: GATING,
        scenario: "rule-deleted",
        edits: &[(
            "src/engine/freshness.rs",
            "now.saturating_duration_since(as_of) > MAX_AGE || required.is_some_and(|required| as_of < required)",
            "false",
        )],
    },
    Protection {
        as_if: "any version proved that a view is current, as an API server that lags has it",
        law: GATING,
        scenario: "heartbeat",
        edits: &[("src/engine/freshness.rs", "*version <= self.shown", "true")],
    },
    Protection {
        as_if: "what has still to be seen of a DaemonSet that a rule names were not there",
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
        as_if: "the process had not stood still",
        law: GATING,
        scenario: "several-conditions",
        edits: &[("src/engine/clock.rs", "waited > STALL || was_set", "false")],
    },
    Protection {
        as_if: "the clock had not been set",
        law: GATING,
        scenario: "several-conditions",
        edits: &[("src/engine/clock.rs", "step.abs() > STEP", "false")],
    },
    Protection {
        as_if: "there were no grace period",
        law: GATING,
        scenario: "long-patience",
        edits: &[(
            "src/plan/patience.rs",
            "Some(until) if now < until =>",
            "Some(until) if now < until && !TAKEN_OUT =>",
        )],
    },
    Protection {
        as_if: "`allOf` were `anyOf`",
        law: REMOVAL,
        scenario: "several-conditions",
        edits: &[(
            "src/plan/outcome.rs",
            "findings.iter().all(ConditionOutcome::is_met)",
            "findings.iter().any(ConditionOutcome::is_met)",
        )],
    },
    Protection {
        as_if: "a silent reporter had been heard",
        law: REMOVAL,
        scenario: "heartbeat",
        edits: &[(
            "src/condition/trust.rs",
            "observations.is_unproven(kind, &(oldest..=newest))",
            "false",
        )],
    },
    Protection {
        as_if: "what a rule follows from now on had not been there before",
        law: REMOVAL,
        scenario: "late-heartbeat",
        edits: &[(
            "src/condition/observations.rs",
            "let last_write = last_write(node, kind)",
            "let last_write = if TAKEN_OUT { None } else { last_write(node, kind) }",
        )],
    },
    Protection {
        as_if: "a DaemonSet without a pod had one",
        law: REMOVAL,
        scenario: "room-first",
        edits: &[(
            "src/condition/daemon_sets.rs",
            "None => missing.push(&daemon_set.key),",
            "None => if !TAKEN_OUT { missing.push(&daemon_set.key) },",
        )],
    },
    Protection {
        as_if: "a pod had its room only once it is Ready",
        law: END,
        scenario: "room-first",
        edits: &[(
            "src/condition/daemon_sets.rs",
            "as_ready && best.1 != PodEvidence::Ready",
            "best.1 != PodEvidence::Ready",
        )],
    },
    Protection {
        as_if: "a pod that is Ready were available",
        law: REMOVAL,
        scenario: "available",
        edits: &[(
            "src/condition/pods.rs",
            "seconds > 0 && facts.now < until",
            "false",
        )],
    },
    Protection {
        as_if: "a pod that is older than its node spoke of it",
        law: REMOVAL,
        scenario: "re-registration-late-pods",
        edits: &[("src/condition/pods.rs", "since < *created", "false")],
    },
    Protection {
        as_if: "the `CSINode` of an earlier node of the name spoke of this one",
        law: REMOVAL,
        scenario: "re-registration-csi",
        edits: &[("src/condition/csi.rs", "csi_node.is_of(&node.uid)", "true")],
    },
    Protection {
        as_if: "what was written before a reboot spoke of this boot",
        law: REMOVAL,
        scenario: "regate",
        edits: &[(
            "src/condition/trust.rs",
            "!observations.is_written_in_this_boot(kind)",
            "false",
        )],
    },
    Protection {
        as_if: "our clock alone told what is from before a reboot",
        law: REMOVAL,
        scenario: "regate-components",
        edits: &[(
            "src/condition/observations.rs",
            "boot.older.max(wrote)",
            "boot.older",
        )],
    },
    Protection {
        as_if: "pods had not been restarted by a reboot",
        law: REMOVAL,
        scenario: "regate-late-pods",
        edits: &[(
            "src/condition/trust.rs",
            "self.distrusts_until(OLD_PODS, now)",
            "None",
        )],
    },
    Protection {
        as_if: "a driver that was registered before a reboot were there",
        law: REMOVAL,
        scenario: "regate-csi",
        edits: &[(
            "src/condition/csi.rs",
            "facts.observations.is_registered_in_this_boot(driver)",
            "true",
        )],
    },
    Protection {
        as_if: "a patch were for whichever node has the name",
        law: REMOVAL,
        scenario: "re-registration-in-flight",
        edits: &[(
            "src/engine/patch.rs",
            "Operations::on(&node.uid)",
            "Operations(Vec::new())",
        )],
    },
    Protection {
        as_if: "no rule were about to take over a deleted one's taint",
        law: REMOVAL,
        scenario: "succession",
        edits: &[(
            "src/plan/clean_up.rs",
            "self.has_pending_successor(key, effect)",
            "false",
        )],
    },
    Protection {
        as_if: "an earlier rule that waits for its finalizer were not there",
        law: REMOVAL,
        scenario: "conflict",
        edits: &[(
            "src/plan/taint.rs",
            "self.has_pending_governor(rule, spec)",
            "false",
        )],
    },
    Protection {
        as_if: "a node had all of its labels from the beginning",
        law: REMOVAL,
        scenario: "introduced",
        edits: &[("src/plan/taint.rs", "!self.node.is_introduced()", "false")],
    },
    Protection {
        as_if: "a taint that stays released a node from a DaemonSet that a rule names",
        law: REMOVAL,
        scenario: "staying-taints",
        edits: &[(
            "src/condition/daemon_sets.rs",
            "placement == Placement::NotMeant",
            "placement != Placement::Meant",
        )],
    },
    Protection {
        as_if: "what others put on nodes for a while were there to stay",
        law: REMOVAL,
        scenario: "passing-taints",
        edits: &[(
            "src/condition/placement.rs",
            "self.configured.iter().any(fits)",
            "false",
        )],
    },
    Protection {
        as_if: "a DaemonSet were not meant for a node that has a live pod of it",
        law: REMOVAL,
        scenario: "live-pod",
        edits: &[("src/condition/placement.rs", "is_pod()", "false")],
    },
    Protection {
        as_if: "who can annotate a node could put its deadline into the past",
        law: REMOVAL,
        scenario: "release-forged",
        edits: &[(
            "src/plan/deadlines.rs",
            "repair.action == RepairAction::Release",
            "false",
        )],
    },
    Protection {
        as_if: "a completion on record did not count",
        law: BOOTSTRAP,
        scenario: "adoption",
        edits: &[(
            "src/rule/ownership.rs",
            "matches!(self, Self::Done | Self::Unstamped)",
            "false",
        )],
    },
    Protection {
        as_if: "a completion counted for every boot",
        law: END,
        scenario: "regate",
        edits: &[(
            "src/rule/ownership.rs",
            "*value.boot_id != *node.boot_id && !value.boot_id.is_empty()",
            "false",
        )],
    },
    Protection {
        as_if: "a patch did not test the node's taints",
        law: OTHERS,
        scenario: "foreign-writer",
        edits: &[(
            "src/engine/patch.rs",
            r#"operations.replace_list(&["spec", "taints"], &node.taints, &taints)"#,
            r#"operations.add(&["spec", "taints"], json!(taints))"#,
        )],
    },
    Protection {
        as_if: "a taint were known by its key alone",
        law: OTHERS,
        scenario: "another-effect",
        edits: &[(
            "src/object/taint.rs",
            "self.key == key && self.effect == effect.as_str()",
            "self.key == key",
        )],
    },
    Protection {
        as_if: "an annotation that names an unknown rule could be believed",
        law: OTHERS,
        scenario: "forged",
        edits: &[(
            "src/plan/clean_up.rs",
            "set.remembers(owner) || is_ours()",
            "true",
        )],
    },
    Protection {
        as_if: "a node that another controller has gated were joining",
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
        as_if: "a node of which nothing is remembered were joining",
        law: GUARD,
        scenario: "zone-outage",
        edits: &[(
            "src/plan/patience.rs",
            "None => is_new(self.joined, now)",
            "None => TAKEN_OUT || is_new(self.joined, now)",
        )],
    },
    Protection {
        as_if: "a guard's bucket were always full",
        law: GUARD,
        scenario: "zone-outage",
        edits: &[(
            "src/guard/grants.rs",
            "self.tokens.take();",
            "if !TAKEN_OUT { self.tokens.take(); }",
        )],
    },
    Protection {
        as_if: "a guard went on where no node is well",
        law: GUARD,
        scenario: "bad-version",
        edits: &[(
            "src/guard/grants.rs",
            "!zones.is_empty() && zones.values().all(|tally| tally.met == 0)",
            "false",
        )],
    },
    Protection {
        as_if: "a guard went on where most nodes of a small zone are not",
        law: GUARD,
        scenario: "partial-outage",
        edits: &[(
            "src/guard/limits.rs",
            "ZoneState::PartialDisruption => 0.0,",
            "ZoneState::PartialDisruption => if TAKEN_OUT { self.eviction_rate } else { 0.0 },",
        )],
    },
    Protection {
        as_if: "a rule that comes into force could gate any number of nodes",
        law: FIRST,
        scenario: "first-blow",
        edits: &[(
            "src/engine/rules/first_gating.rs",
            "would_gate.exceeds(limit)",
            "would_gate.exceeds(limit) && !TAKEN_OUT",
        )],
    },
    Protection {
        as_if: "a rule that is held back had the same nodes to gate for ever",
        law: FIRST,
        scenario: "first-blow",
        edits: &[(
            "src/engine/rules/first_gating.rs",
            "if let Self::Open(open) = self {",
            "if let Self::Open(open) = self && !TAKEN_OUT {",
        )],
    },
    Protection {
        as_if: "a deleted rule had nothing to clean up",
        law: DELETION,
        scenario: "rule-deleted",
        edits: &[(
            "src/engine/rules/finalizers.rs",
            "is_clean(work, cache, nodes)",
            "true",
        )],
    },
    Protection {
        as_if: "a node had never been released",
        law: CLAIMS,
        scenario: "replace-none-released",
        edits: &[(
            "src/repair/verdict.rs",
            "rule.leaves_alone(node.created) || keys.any(|key| node.annotation(key).is_some())",
            "false",
        )],
    },
    Protection {
        as_if: "replacing a node always helped",
        law: VAIN,
        scenario: "replace-in-vain",
        edits: &[(
            "src/repair/setback.rs",
            "!self.is_about(condition, pool) || missed == 0",
            "!self.is_about(condition, pool) || missed == 0 || TAKEN_OUT",
        )],
    },
    Protection {
        as_if: "a zone in which every node is late told nothing",
        law: CLAIMS,
        scenario: "replace-zone",
        edits: &[(
            "src/repair/health.rs",
            "joining == late && *late > FEW",
            "joining == late && *late > FEW && !TAKEN_OUT",
        )],
    },
    Protection {
        as_if: "it did not matter how many others are late",
        law: CLAIMS,
        scenario: "replace-blocked",
        edits: &[("src/repair/verdict.rs", "count.exceeds(limit)", "false")],
    },
    Protection {
        as_if: "what somebody undoes were done again at once",
        law: WRITES,
        scenario: "undone",
        edits: &[(
            "src/engine/attempt.rs",
            "self.repeats >= TOLERATED",
            "false",
        )],
    },
    Protection {
        as_if: "what is refused were tried again at once",
        law: WRITES,
        scenario: "re-registration-components",
        edits: &[(
            "src/engine/attempt.rs",
            "self.backoff.failed(pauses, now);",
            "if !TAKEN_OUT { self.backoff.failed(pauses, now); }",
        )],
    },
    Protection {
        as_if: "refused Events held up all writes",
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
        as_if: "no write to the node were under way",
        law: LEADER,
        scenario: "bootstrap",
        edits: &[(
            "src/engine/machine.rs",
            "if work.write.is_under_way() {",
            "if work.write.is_under_way() && !TAKEN_OUT {",
        )],
    },
    Protection {
        as_if: "nobody had told the process to stop",
        law: LEADER,
        scenario: "rolling-update",
        edits: &[(
            "src/engine/machine.rs",
            "self.is_stopping = true;",
            "self.is_stopping = !TAKEN_OUT;",
        )],
    },
    Protection {
        as_if: "the lease had not gone to another",
        law: LEADER,
        scenario: "busy-leader",
        edits: &[(
            "src/engine/election.rs",
            "Renewal::Taken => return Err(Loss::Taken),",
            "Renewal::Taken => if !TAKEN_OUT { return Err(Loss::Taken) },",
        )],
    },
    Protection {
        as_if: "the lease never ran out",
        law: LEADER,
        scenario: "busy-leader",
        edits: &[(
            "src/engine/election.rs",
            "self.renewed + RENEW_DEADLINE",
            "self.renewed + RENEW_DEADLINE * 1000",
        )],
    },
];
