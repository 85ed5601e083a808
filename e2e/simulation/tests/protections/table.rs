//! The protections that can be taken out.

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
const SETTLED: &str = "release waits for the settle period";
const ABSENCE: &str = "an absence that has not lasted changes nothing";
const BOOTSTRAP: &str = "a completed bootstrap is never gated again";
const END: &str = "at the end everything is as the rules say";
const OTHERS: &str = "what is others' stays as it is";
const GUARD: &str = "a guarded rule gates no more nodes than its rates allow";
const FIRST: &str = "a rule that comes into force gates no more nodes in use than its limit";
const MINUTE: &str = "a rule gates no more nodes that come under it within a minute than its limit";
const REACTION: &str = "who reacts to the taint is gated ever less often";
const DELETION: &str = "a deleted rule goes when its nodes are clean";
const CLAIMS: &str = "no claim of a node is deleted that was ever released";
const VAIN: &str = "what does not help is not repeated for ever";
const WRITES: &str = "writes are bounded";
const WORKLOAD: &str = "a joining node runs no workload";
const LEADER: &str = "only a leader writes, and one thing at a time";

const fn without(
    bug: &'static str,
    law: &'static str,
    scenario: &'static str,
    edits: &'static [Edit],
) -> Protection {
    Protection {
        bug,
        law,
        scenario,
        edits,
    }
}

#[rustfmt::skip]
pub(crate) const PROTECTIONS: &[Protection] = &[
    without("no evidence is ever stale", GATING, "rule-deleted", &[
        ("src/engine/freshness.rs", "now.saturating_duration_since(as_of) > MAX_AGE || required.is_some_and(|required| as_of < required)",
            "false"),
    ]),
    without("any version proves that a view is current", GATING, "heartbeat", &[
        ("src/engine/freshness.rs", "*version <= *shown", "true"),
    ]),
    without("DaemonSets that are not listed yet count as absent", GATING, "named", &[
        ("src/core/plan/state.rs", "self.named(it).is_some_and(|named| !named.is_seen)", "false"),
        ("src/core/condition/facts.rs", "if !named.is_seen {", "if !named.is_seen && !TAKEN_OUT {"),
    ]),
    without("a process that stood still trusts its view", GATING, "several-conditions", &[
        ("src/engine/clock.rs", "waited > STALL || is_set", "false"),
    ]),
    without("a clock that is set goes unnoticed", GATING, "several-conditions", &[
        ("src/engine/clock.rs", "step.abs() > STEP", "false"),
    ]),
    without("grace periods are ignored", GATING, "long-patience", &[
        ("src/core/plan/patience.rs", "Some(until) if now < until =>", "Some(until) if now < until && !TAKEN_OUT =>"),
    ]),
    without("fields that another definition dropped count as never set", GATING, "pruned", &[
        ("src/core/rule/compile.rs", "pruned || ours.is_some_and(|ours| ours.suspend)", "ours.is_some_and(|ours| ours.suspend)"),
    ]),
    without("a condition that nobody renews is silent", GATING, "written-once", &[
        ("src/core/condition/trust.rs", "self.beating.is_some_and(|it| it.contains(kind))", "true"),
    ]),
    without("`allOf` means `anyOf`", REMOVAL, "several-conditions", &[
        ("src/core/plan/judged.rs", "findings.iter().all(ConditionOutcome::is_met)", "findings.iter().any(ConditionOutcome::is_met)"),
    ]),
    without("a settle period is ignored", SETTLED, "settling", &[
        ("src/core/plan/taint.rs", "settles.is_some()", "false"),
    ]),
    without("a break does not begin a settle period anew", SETTLED, "settling", &[
        ("src/core/plan/patience.rs", "unmet_since, met_since, };",
            "unmet_since, met_since: met_since.or(known.and_then(|known| known.met_since).filter(|_| TAKEN_OUT)), };"),
    ]),
    without("silent reporters are believed", REMOVAL, "heartbeat", &[
        ("src/core/condition/trust.rs", "heartbeat.is_some_and(|it| it.is_unproven(&(oldest..=newest)))", "false"),
    ]),
    without("a condition's earlier heartbeats are ignored", REMOVAL, "late-heartbeat", &[
        ("src/core/condition/observations.rs", "let last_write = last_write(node, kind)",
            "let last_write = if TAKEN_OUT { None } else { last_write(node, kind) }"),
    ]),
    without("a DaemonSet without a pod counts as scheduled", REMOVAL, "room-first", &[
        ("src/core/condition/daemon_sets.rs", "pods.of(it).next().is_none()", "false"),
    ]),
    without("a pod counts as scheduled only once it is Ready", END, "room-first", &[
        ("src/core/condition/daemon_sets.rs", "as_ready && *evidence != PodEvidence::Ready", "*evidence != PodEvidence::Ready"),
    ]),
    without("`minReadySeconds` is ignored", REMOVAL, "available", &[
        ("src/core/condition/pods.rs", "seconds > 0 && facts.now < until", "false"),
    ]),
    without("a pod older than its Node counts as Ready", REMOVAL, "re-registration-late-pods", &[
        ("src/core/condition/pods.rs", "since < *created", "false"),
    ]),
    without("an earlier node's `CSINode` counts", REMOVAL, "re-registration-csi", &[
        ("src/core/condition/csi.rs", "it.is_of(&facts.node.uid)", "true"),
    ]),
    without("conditions from before a reboot count", REMOVAL, "regate", &[
        ("src/core/condition/trust.rs", "!heartbeat.is_some_and(|it| it.in_this_boot)", "false"),
    ]),
    without("the controller's clock dates a reboot", REMOVAL, "regate-components", &[
        ("src/core/condition/observations.rs", "if clock_went_on { wrote } else { boot.older }", "now"),
    ]),
    without("pods from before a reboot count as Ready", REMOVAL, "regate-late-pods", &[
        ("src/core/condition/pods.rs", "facts.trust.distrusts_until(OLD_PODS, facts.now)", "None"),
    ]),
    without("drivers from before a reboot count as registered", REMOVAL, "regate-csi", &[
        ("src/core/condition/csi.rs", "facts.observations.registered.contains(driver)", "true"),
    ]),
    without("a patch does not test the UID", REMOVAL, "re-registration-in-flight", &[
        ("src/engine/patch.rs", "Operations::on(&node.uid)", "Operations(Vec::new())"),
    ]),
    without("a successor of a deleted rule is ignored", REMOVAL, "succession", &[
        ("src/core/plan/clean_up.rs", "self.has_pending_successor(key, effect)", "false"),
    ]),
    without("an earlier rule without its finalizer is ignored", REMOVAL, "conflict", &[
        ("src/core/plan/taint.rs", "self.has_pending_governor(rule, spec)", "false"),
    ]),
    without("labels that come late are taken for there from the start", REMOVAL, "introduced", &[
        ("src/core/plan/taint.rs", "self.node.is_introduced()", "true"),
    ]),
    without("labels that may still come are taken for missing", REMOVAL, "cluster-api", &[
        ("src/core/condition/daemon_sets.rs", "facts.node.awaits_labels()", "false"),
    ]),
    without("a taint that stays excuses a named DaemonSet", REMOVAL, "staying-taints", &[
        ("src/core/condition/daemon_sets.rs", "if placement == Placement::NotMeant {",
            "if placement == Placement::NotMeant || TAKEN_OUT && placement != Placement::Meant {"),
    ]),
    without("temporary taints count as permanent", REMOVAL, "passing-taints", &[
        ("src/core/condition/placement.rs", "self.configured.iter().any(fits)", "false"),
    ]),
    without("a DaemonSet with a live pod is not waited for", REMOVAL, "live-pod", &[
        ("src/core/condition/placement.rs", "is_pod()", "false"),
    ]),
    without("a forged deadline is believed", REMOVAL, "release-forged", &[
        ("src/core/plan/deadlines.rs", "repair.action == RepairAction::Release", "false"),
    ]),
    without("a late node in maintenance is released", REMOVAL, "release-maintenance", &[
        ("src/core/repair/verdict.rs", "if node.is_in_maintenance() =>", "if node.is_in_maintenance() && !TAKEN_OUT =>"),
    ]),
    without("DaemonSets that a rule leaves out hold its nodes", END, "all-but-some", &[
        ("src/core/condition/daemon_sets.rs", "facts.except.contains(&it.key)", "false"),
    ]),
    without("pods of DaemonSets that a rule leaves out hold its nodes", END, "all-but-some", &[
        ("src/core/condition/pods.rs", "!facts.leaves_out(pod, group)", "true"),
    ]),
    without("drivers of DaemonSets that a rule leaves out hold its nodes", END, "all-but-some", &[
        ("src/core/condition/csi.rs", "!facts.leaves_out(pod, group)", "true"),
    ]),
    without("a rule that leaves out one DaemonSet waits for none", END, "all-but-some", &[
        ("src/core/condition/daemon_sets.rs", "!is_excepted(it)", "facts.except.is_empty()"),
    ]),
    without("labels that go are gone at once", ABSENCE, "labeller-restarts", &[
        ("src/core/condition/absence.rs", "NodeLabels::new(self.node, self.recall)", "NodeLabels::new(self.node, self.recall.filter(|_| !TAKEN_OUT))"),
    ]),
    without("a rule lets a node go when its labels go", ABSENCE, "labeller-restarts", &[
        ("src/core/rule/set.rs", "labels.matches(&spec.selector)", "false"),
    ]),
    without("a bootstrap is completed by an absence", ABSENCE, "labeller-restarts", &[
        ("src/core/plan/decision.rs", "(Case::AbsenceNotLasted, if it.tainted { Hold } else { NotHeld }, false)",
            "(Case::AbsenceNotLasted, if it.tainted { Hold } else { NotHeld }, TAKEN_OUT && !it.tainted)"),
    ]),
    without("a new leader forgets what an earlier one waited for", ABSENCE, "labels-taken-at-restart", &[
        ("src/core/condition/observations.rs", "None if has_a_past(node) =>", "None if has_a_past(node) && !TAKEN_OUT =>"),
    ]),
    without("a deleted DaemonSet is gone at once", ABSENCE, "daemon-set-re-created", &[
        ("src/core/condition/absence.rs", "self.recall.is_some_and(|it| recalls(until, it))", "false"),
    ]),
    without("a pod that nothing controls is no DaemonSet's", ABSENCE, "daemon-set-re-created", &[
        ("src/core/object/daemon_set.rs", "pod.orphan.as_deref().is_some_and(selects)", "false"),
    ]),
    without("recorded completions are ignored", BOOTSTRAP, "adoption", &[
        ("src/core/rule/ownership.rs", "matches!(self, Self::Done | Self::Unstamped)", "false"),
    ]),
    without("a completion counts for every boot", END, "regate", &[
        ("src/core/rule/ownership.rs", "*value.boot_id != *node.boot_id && !value.boot_id.is_empty()", "false"),
    ]),
    without("a completion outlasts a maintenance", END, "regate-maintenance", &[
        ("src/core/rule/ownership.rs", "value.maintenance && !is_in_maintenance", "false"),
    ]),
    without("a maintenance is not recorded", END, "regate-maintenance", &[
        ("src/core/rule/ownership.rs", "spec.ours.regate_on.contains(&RegateOn::Maintenance) && node.is_in_maintenance()", "false"),
    ]),
    without("a patch does not test the taints", OTHERS, "foreign-writer", &[
        ("src/engine/patch.rs", r#"operations.replace_list(&["spec", "taints"], &node.taints, &taints)"#,
            r#"operations.add(&["spec", "taints"], json!(taints))"#),
    ]),
    without("a taint's effect is ignored", OTHERS, "another-effect", &[
        ("src/core/object/taint.rs", "self.key == key && self.effect == effect.as_str()", "self.key == key"),
    ]),
    without("an annotation of an unknown rule is believed", OTHERS, "forged", &[
        ("src/core/plan/clean_up.rs", "set.remembers(owner) || is_ours()", "true"),
    ]),
    without("a node that another controller tainted counts as joining", GUARD, "gated-by-another", &[
        ("src/core/plan/patience.rs",
            "if tainted && !owners.is_empty() {",
            "if TAKEN_OUT && tainted && owners.is_empty() { return true; }
             if tainted && !owners.is_empty() {"),
    ]),
    without("a node without a history counts as joining", GUARD, "zone-outage", &[
        ("src/core/plan/patience.rs", "None => is_new(self.state.joined, self.now)",
            "None => TAKEN_OUT || is_new(self.state.joined, self.now)"),
    ]),
    without("a disruption limit's bucket is always full", GUARD, "zone-outage", &[
        ("src/core/guard/grants.rs", "self.tokens.take();", "if !TAKEN_OUT { self.tokens.take(); }"),
    ]),
    without("a zone without a ready node is gated further", GUARD, "bad-version", &[
        ("src/core/guard/grants.rs", "!zones.is_empty() && zones.values().all(|tally| tally.met == 0)", "false"),
    ]),
    without("a small zone that is mostly unready is gated further", GUARD, "partial-outage", &[
        ("src/core/guard/limits.rs", "ZoneState::PartialDisruption => 0.0,",
            "ZoneState::PartialDisruption => if TAKEN_OUT { self.eviction_rate } else { 0.0 },"),
    ]),
    without("a node in maintenance counts as unmet, and is gated", GUARD, "maintenance", &[
        ("src/engine/rules/gating.rs", "*member == Member::Met || !node.is_in_maintenance()", "true"),
    ]),
    without("`maxFirstGated` is ignored", FIRST, "first-blow", &[
        ("src/engine/rules/first_gating.rs", "would_gate.after(lately).exceeds(limit)", "would_gate.after(lately).exceeds(limit) && !TAKEN_OUT"),
    ]),
    without("a rule that is held back is never evaluated again", FIRST, "first-blow", &[
        ("src/engine/rules/first_gating.rs", "gating.refused = Some(lately);", "(gating.refused, gating.is_due) = (Some(lately), !TAKEN_OUT);"),
        ("src/engine/rules/first_gating.rs", "!self.covers(Some(record))", "false"),
    ]),
    without("a permission covers every node from then on", MINUTE, "first-blow-replaced", &[
        ("src/engine/rules/first_gating.rs", "it.covered == self.term)", "it.covered == self.term || TAKEN_OUT && self.is_permitted)"),
    ]),
    without("nodes that come under a rule one after another are not counted together", MINUTE, "first-blow-relabelled", &[
        ("src/engine/rules/first_gating.rs", "now < *at + TOGETHER", "false"),
    ]),
    without("a deleted rule cleans nothing up", DELETION, "rule-deleted", &[
        ("src/engine/rules/finalizers.rs", "is_clean(work, cache, nodes)", "true"),
    ]),
    without("releases are forgotten", CLAIMS, "replace-none-released", &[
        ("src/core/repair/verdict.rs", "rule.leaves_alone(node.created) || keys.any(|key| node.annotation(key).is_some())", "false"),
    ]),
    without("repairs that did not help are repeated", VAIN, "replace-in-vain", &[
        ("src/core/repair/setback.rs", "!self.is_about(condition, pool) || missed == 0",
            "!self.is_about(condition, pool) || missed == 0 || TAKEN_OUT"),
    ]),
    without("a zone in which every joining node is late is repaired", CLAIMS, "replace-zone", &[
        ("src/core/repair/health.rs", "joining == late && *late > FEW", "joining == late && *late > FEW && !TAKEN_OUT"),
    ]),
    without("many late nodes are repaired", CLAIMS, "replace-blocked", &[
        ("src/core/repair/verdict.rs", "count.exceeds(limit)", "false"),
    ]),
    without("a change that is undone is repeated at once", WRITES, "undone", &[
        ("src/engine/attempt.rs", "self.repeats >= TOLERATED", "false"),
    ]),
    without("who reacts to the taint is gated each time at once", REACTION, "unlabelled", &[
        ("src/engine/attempt.rs", "WINDOW * if self.gates { 30 } else { 1 }", "WINDOW"),
    ]),
    without("a refused write is repeated at once", WRITES, "re-registration-components", &[
        ("src/engine/attempt.rs", "self.backoff.failed(pauses, now);", "if !TAKEN_OUT { self.backoff.failed(pauses, now); }"),
    ]),
    without("refused Events slow all writes", WORKLOAD, "bootstrap", &[
        ("src/engine/pacer/mod.rs",
            "let of_class = self.limit(class).not_before(now);",
            "let of_class = if TAKEN_OUT {
                self.limits.iter().filter_map(|it| it.not_before(now)).max()
            } else {
                self.limit(class).not_before(now)
            };"),
    ]),
    without("writes under way are ignored", LEADER, "bootstrap", &[
        ("src/engine/machine.rs", "if work.write.is_under_way() {", "if work.write.is_under_way() && !TAKEN_OUT {"),
    ]),
    without("an order to stop is ignored", LEADER, "rolling-update", &[
        ("src/engine/machine.rs", "self.is_stopping = true", "self.is_stopping = !TAKEN_OUT"),
    ]),
    without("a lost lease is ignored", LEADER, "busy-leader", &[
        ("src/engine/election.rs", "Renewal::Taken => return Err(Loss::Taken),",
            "Renewal::Taken => if !TAKEN_OUT { return Err(Loss::Taken) },"),
    ]),
    without("a lease that was deleted is anybody's", LEADER, "busy-leader", &[
        ("src/engine/election.rs", "self.former.is_some_and(|until| now < until)",
            "(!TAKEN_OUT && self.former.is_some_and(|until| now < until))"),
        ("src/engine/election.rs", "self.former.is_none() ||", "TAKEN_OUT || self.former.is_none() ||"),
    ]),
    without("a lease never runs out", LEADER, "busy-leader", &[
        ("src/engine/election.rs", "self.renewed + RENEW_DEADLINE", "self.renewed + RENEW_DEADLINE * 1000"),
    ]),
];
