//! The decision table: what the rule that governs a taint on a node does.

use jiff::Timestamp;

use crate::api::{EnforcementMode, TaintPolicy};

/// What one rule does to one node.
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

/// Why a node is not gated yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The conditions have not been unmet for long enough.
    Grace {
        /// When the grace period ends.
        until: Timestamp,
    },
    /// The node is in use, and the rule has come into force: it may not gate such nodes yet, or would gate too many of them.
    FirstGating,
    /// The disruption guard has not permitted it yet.
    Disruption,
    /// What it depends on is not current.
    Stale,
}

impl Decision {
    /// The decision that changes nothing.
    pub(super) fn nothing(tainted: bool) -> Self {
        if tainted { Self::Hold } else { Self::NotHeld }
    }

    /// Whether the node has the taint once the decision is carried out.
    pub fn holds(self) -> bool {
        matches!(self, Self::Hold | Self::Gate)
    }

    /// Whether the taint is removed.
    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::GiveUp)
    }

    /// The decision while evidence is stale, which leaves the node as it is; `None` if this decision is harmless.
    ///
    /// `completes`: it completes a bootstrap. `is_new`: the node has just joined and runs nothing yet. Such a node is gated anyway.
    pub fn on_stale_evidence(self, completes: bool, is_new: bool) -> Option<Self> {
        match self {
            Self::Gate => (!is_new).then_some(Self::Wait(WaitReason::Stale)),
            Self::Release | Self::GiveUp => Some(Self::Hold),
            Self::NotHeld => completes.then_some(self),
            Self::Hold | Self::Wait(_) => None,
        }
    }
}

/// Decides for a rule that governs its taint on a node, and whether that completes the node's bootstrap under the rule.
///
/// `met`: the rule's conditions are met. `tainted`: the node has the taint, whoever added it. `completed`: the completed
/// bootstrap under this rule is on record, so the taint is never added again. `held`: why the node may not be gated yet.
pub(super) fn decide(
    mode: EnforcementMode,
    policy: TaintPolicy,
    met: bool,
    tainted: bool,
    completed: bool,
    held: Option<WaitReason>,
) -> (Decision, bool) {
    let bootstrap = mode == EnforcementMode::BootstrapOnly;
    let only_removes = policy == TaintPolicy::RemoveOnly;
    let decision = match (met, tainted) {
        (true, true) => Decision::Release,
        (true, false) => Decision::NotHeld,
        (false, true) => Decision::Hold,
        (false, false) if only_removes || (bootstrap && completed) => Decision::NotHeld,
        (false, false) => held.map_or(Decision::Gate, Decision::Wait),
    };
    let completes = met && bootstrap && !completed && (tainted || !only_removes);
    (decision, completes)
}

#[cfg(test)]
mod tests {
    use super::Decision::{Gate, Hold, NotHeld, Release, Wait};
    use super::*;

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
            let decision = decide(mode, policy, met, tainted, completed, None);
            assert_eq!(decision, expected, "{case}");
            // `held` only ever keeps a node from being gated.
            let held = decide(
                mode,
                policy,
                met,
                tainted,
                completed,
                Some(WaitReason::Disruption),
            );
            let expected = match expected {
                (Gate, _) => (Wait(WaitReason::Disruption), false),
                other => other,
            };
            assert_eq!(held, expected, "{case}, held back");
        }
    }
}
