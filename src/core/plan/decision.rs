//! The decision table: what a rule does to its taint on a node. `docs/behavior.md` has the same rows in the same order.

use jiff::Timestamp;

use crate::api::{EnforcementMode, TaintPolicy};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Conditions are unmet and the taint is present: it stays.
    Hold,
    /// Conditions are unmet and the taint is absent: add it.
    Gate,
    /// Conditions are unmet and the taint is absent, but it may not be added yet.
    Wait(WaitReason),
    /// Conditions are met and the taint is present: remove it.
    Release,
    /// The conditions were not met in time and the taint is present: remove it anyway, and leave the node alone from then on.
    GiveUp,
    /// The taint is absent and need not be present.
    NotHeld,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The conditions have not been unmet for long enough.
    Grace {
        until: Timestamp,
    },
    /// The node is in use, and has come under the rule: such nodes have yet to be counted, or are too many.
    FirstGating,
    Disruption,
    /// The conditions depend on something that has not been seen yet, or is stale.
    Stale,
}

impl Decision {
    /// Whether the node has the taint once the decision is carried out.
    pub fn holds(self) -> bool {
        matches!(self, Self::Hold | Self::Gate)
    }

    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::GiveUp)
    }
}

/// All that bears on a rule's taint on a node. The functions are costly, so a row asks them last.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Situation<'f> {
    pub mode: EnforcementMode,
    pub policy: TaintPolicy,
    pub suspended: bool,
    /// Whether the conditions are met or not only because something went that has not been gone for long.
    pub absence: bool,
    /// Whether the rule governs its taint here. Another rule's decision is at most counted.
    pub governs: bool,
    pub tainted: bool,
    pub met: bool,
    /// Whether the node is late, and the rule's `repair` releases it.
    pub given_up: bool,
    /// Whether a completed bootstrap under this rule is on record: the taint is never added again.
    pub completed: bool,
    /// Whether the labels that select `DaemonSet`s are there.
    pub introduced: bool,
    /// Whether the conditions have to stay met for longer.
    pub settling: bool,
    pub wait: Option<WaitReason>,
    /// Whether the node has just joined and runs nothing yet.
    pub new: bool,
    /// Whether evidence that the rule depends on is stale, or has not been seen yet.
    pub lacks_evidence: &'f dyn Fn() -> bool,
    /// Whether an earlier rule is about to govern the taint.
    pub awaits_governor: &'f dyn Fn() -> bool,
}

/// The rows of the table, which say why a decision is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    Suspended,
    AbsenceNotLasted,
    Settling,
    ReleaseAwaitsEvidence,
    ReleaseAwaitsGovernor,
    Release,
    GiveUp,
    Hold,
    CompletionAwaitsEvidence,
    Completion,
    Met,
    OnlyRemoves,
    Completed,
    Wait,
    GateAwaitsEvidence,
    Gate,
}

impl Case {
    pub(super) fn awaits_evidence(self) -> bool {
        matches!(
            self,
            Self::ReleaseAwaitsEvidence | Self::CompletionAwaitsEvidence | Self::GateAwaitsEvidence
        )
    }
}

/// The first row that applies, what it decides, and whether that completes the node's bootstrap under the rule.
#[rustfmt::skip]
pub(super) fn decide(it: &Situation<'_>) -> (Case, Decision, bool) {
    use Decision::{Gate, GiveUp, Hold, NotHeld, Release, Wait};
    let bootstrap = it.mode == EnforcementMode::BootstrapOnly;
    let only_removes = it.policy == TaintPolicy::RemoveOnly;
    // A remove-only rule never gates again, so its record does no harm, however early it is.
    let completes = bootstrap && !it.completed && (it.introduced || only_removes);
    let records = completes && !only_removes;
    let given_up = it.given_up && it.governs;
    let ends = it.met || given_up;
    match (it.tainted, it.met, it.wait) {
        _ if it.suspended => (Case::Suspended, if it.tainted { Hold } else { NotHeld }, false),
        _ if it.absence => (Case::AbsenceNotLasted, if it.tainted { Hold } else { NotHeld }, false),
        (_, true, _) if it.settling => (Case::Settling, if it.tainted { Hold } else { NotHeld }, false),

        (true, ..) if ends && (it.lacks_evidence)() => (Case::ReleaseAwaitsEvidence, Hold, false),
        (true, ..) if ends && it.governs && (it.awaits_governor)() => (Case::ReleaseAwaitsGovernor, Hold, false),
        (true, true, _) => (Case::Release, Release, completes),
        (true, false, _) if given_up => (Case::GiveUp, GiveUp, true),
        (true, false, _) => (Case::Hold, Hold, false),

        (false, true, _) if records && (it.lacks_evidence)() => (Case::CompletionAwaitsEvidence, NotHeld, false),
        (false, true, _) if records => (Case::Completion, NotHeld, true),
        (false, true, _) => (Case::Met, NotHeld, false),
        (false, false, _) if only_removes => (Case::OnlyRemoves, NotHeld, false),
        (false, false, _) if bootstrap && it.completed => (Case::Completed, NotHeld, false),
        (false, false, Some(reason)) => (Case::Wait, Wait(reason), false),
        (false, false, None) if !it.new && (it.lacks_evidence)() => (Case::GateAwaitsEvidence, Wait(WaitReason::Stale), false),
        (false, false, None) => (Case::Gate, Gate, false),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Decision::{Gate, Hold, NotHeld, Release, Wait};
    use super::*;

    const WAIT: WaitReason = WaitReason::Disruption;

    /// Calls with every combination of facts.
    fn with_every_situation(mut check: impl FnMut(&Situation<'_>)) {
        for bits in 0_u32..1 << 14 {
            let mut rest = bits;
            let mut fact = || {
                let bit = rest & 1;
                rest >>= 1;
                bit == 1
            };
            let (lacks_evidence, awaits_governor) = (fact(), fact());
            check(&Situation {
                mode: [EnforcementMode::BootstrapOnly, EnforcementMode::Continuous]
                    [usize::from(fact())],
                policy: [TaintPolicy::AddAndRemove, TaintPolicy::RemoveOnly][usize::from(fact())],
                suspended: fact(),
                absence: fact(),
                governs: fact(),
                tainted: fact(),
                met: fact(),
                given_up: fact(),
                completed: fact(),
                introduced: fact(),
                settling: fact(),
                wait: fact().then_some(WAIT),
                new: fact(),
                lacks_evidence: &|| lacks_evidence,
                awaits_governor: &|| awaits_governor,
            });
            assert_eq!(rest, 0, "each fact has a bit");
        }
    }

    #[test]
    fn each_row_answers_and_stands_in_the_docs_in_this_order() {
        let mut reached = BTreeSet::new();
        with_every_situation(|it| {
            reached.insert(decide(it).0);
        });
        let page = include_str!("../../../docs/behavior.md");
        let section = page.split("\n## ").nth(1).unwrap();
        let rows = section.lines().filter_map(|it| it.strip_prefix("| *"));
        let names = rows.map(|row| row.split_once('*').unwrap().0.replace(' ', ""));
        let cases = reached
            .iter()
            .map(|case| format!("{case:?}").to_lowercase());
        assert_eq!(names.collect::<Vec<_>>(), cases.collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_released_or_completed_too_early() {
        with_every_situation(|it| {
            let (case, decision, completes) = decide(it);
            let ends = decision.releases() || completes;
            assert!(!(ends && it.suspended), "{case:?} under a suspended rule");
            assert!(!(ends && it.absence), "{case:?} by what has just gone");
            assert!(!(ends && it.met && it.settling), "{case:?} too early");
            assert!(
                !(ends && (it.lacks_evidence)()),
                "{case:?} without evidence"
            );
            // A met bootstrap without a taint is completed whoever is about to govern: nothing changes on the node.
            let awaits_governor = it.governs && it.tainted && (it.awaits_governor)();
            assert!(
                !(ends && awaits_governor),
                "{case:?} before another rule governs"
            );
            assert!(
                !completes || it.mode == EnforcementMode::BootstrapOnly || case == Case::GiveUp
            );
        });
    }

    #[test]
    fn decisions_follow_the_documented_table() {
        use EnforcementMode::{BootstrapOnly as B, Continuous as C};
        use TaintPolicy::{AddAndRemove as Add, RemoveOnly as Remove};
        for (mode, policy, met, tainted, completed, expected) in [
            (C, Add, true, true, false, (Release, false)),
            (C, Add, true, false, false, (NotHeld, false)),
            (C, Add, false, true, false, (Hold, false)),
            (C, Add, false, false, false, (Gate, false)),
            (C, Remove, true, true, false, (Release, false)),
            (C, Remove, true, false, false, (NotHeld, false)),
            (C, Remove, false, true, false, (Hold, false)),
            (C, Remove, false, false, false, (NotHeld, false)),
            (B, Add, true, true, false, (Release, true)),
            (B, Add, true, true, true, (Release, false)),
            (B, Add, true, false, false, (NotHeld, true)),
            (B, Add, true, false, true, (NotHeld, false)),
            (B, Add, false, true, false, (Hold, false)),
            (B, Add, false, true, true, (Hold, false)),
            (B, Add, false, false, false, (Gate, false)),
            (B, Add, false, false, true, (NotHeld, false)),
            (B, Remove, true, true, false, (Release, true)),
            (B, Remove, true, false, false, (NotHeld, false)),
            (B, Remove, false, true, true, (Hold, false)),
            (B, Remove, false, false, false, (NotHeld, false)),
        ] {
            let case = format!("{mode} {policy} met={met} tainted={tainted} completed={completed}");
            let decide = |wait| {
                let (_, decision, completes) = decide(&Situation {
                    mode,
                    policy,
                    suspended: false,
                    absence: false,
                    governs: true,
                    tainted,
                    met,
                    given_up: false,
                    completed,
                    introduced: true,
                    settling: false,
                    wait,
                    new: false,
                    lacks_evidence: &|| false,
                    awaits_governor: &|| false,
                });
                (decision, completes)
            };
            assert_eq!(decide(None), expected, "{case}");
            // A reason to wait only ever keeps a node from being gated.
            let expected = match expected {
                (Gate, _) => (Wait(WAIT), false),
                other => other,
            };
            assert_eq!(decide(Some(WAIT)), expected, "{case}, held back");
        }
    }
}
