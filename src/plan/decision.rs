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
    Release {
        /// Whether this completes the node's bootstrap under the rule.
        completes_bootstrap: bool,
    },
    /// The conditions were not met in time and the taint is present: remove it anyway, and leave the node alone from then on.
    GiveUp,
    /// The taint is absent and need not be present.
    NotHeld {
        /// Whether this completes the node's bootstrap under the rule.
        completes_bootstrap: bool,
    },
}

/// Why a node is not gated yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The conditions have not been unmet for long enough.
    Grace {
        /// When the grace period ends.
        until: Timestamp,
    },
    /// The disruption guard has not permitted it yet.
    Disruption,
    /// Evidence is stale.
    Stale,
}

impl Decision {
    /// Whether the node has the taint once the decision is carried out.
    pub fn holds(self) -> bool {
        matches!(self, Self::Hold | Self::Gate)
    }

    /// Whether the taint is removed.
    pub fn releases(self) -> bool {
        matches!(self, Self::Release { .. } | Self::GiveUp)
    }

    /// Whether to write the completion annotation.
    pub fn completes_bootstrap(self) -> bool {
        match self {
            Self::Release {
                completes_bootstrap,
            }
            | Self::NotHeld {
                completes_bootstrap,
            } => completes_bootstrap,
            Self::GiveUp => true,
            Self::Hold | Self::Gate | Self::Wait(_) => false,
        }
    }

    /// The decision that leaves a node as it is, with or without the taint.
    pub fn nothing(tainted: bool) -> Self {
        if tainted {
            Self::Hold
        } else {
            Self::NotHeld {
                completes_bootstrap: false,
            }
        }
    }

    /// The decision while evidence is stale, which leaves the node as it is; `None` if this decision is harmless.
    ///
    /// `is_new`: the node has just joined and runs nothing yet. Such a node is gated anyway.
    pub fn on_stale_evidence(self, is_new: bool) -> Option<Self> {
        match self {
            Self::Gate => (!is_new).then_some(Self::Wait(WaitReason::Stale)),
            Self::Release { .. } | Self::GiveUp => Some(Self::Hold),
            Self::NotHeld {
                completes_bootstrap,
            } => completes_bootstrap.then_some(Self::NotHeld {
                completes_bootstrap: false,
            }),
            Self::Hold | Self::Wait(_) => None,
        }
    }

    /// The decision for a node that may still lack labels: once it has them, other conditions may apply.
    pub fn without_completion(self) -> Self {
        let completes_bootstrap = false;
        match self {
            Self::Release { .. } => Self::Release {
                completes_bootstrap,
            },
            Self::NotHeld { .. } => Self::NotHeld {
                completes_bootstrap,
            },
            other => other,
        }
    }

    /// The decision for a late node whose rule releases late nodes.
    pub fn given_up(self) -> Self {
        match self {
            Self::Hold => Self::GiveUp,
            other => other,
        }
    }
}

/// Decides for a rule that governs its taint on a node.
///
/// `met`: the rule's conditions are met. `tainted`: the node has the taint, whoever added it. `completed`: the completed
/// bootstrap under this rule is on record, so the taint is never added again. `held`: why the node may not be gated yet.
pub fn decide(
    mode: EnforcementMode,
    policy: TaintPolicy,
    met: bool,
    tainted: bool,
    completed: bool,
    held: Option<WaitReason>,
) -> Decision {
    let bootstrap = mode == EnforcementMode::BootstrapOnly;
    match (met, tainted) {
        (true, true) => Decision::Release {
            completes_bootstrap: bootstrap && !completed,
        },
        (true, false) => Decision::NotHeld {
            completes_bootstrap: bootstrap && !completed && policy == TaintPolicy::AddAndRemove,
        },
        (false, true) => Decision::Hold,
        (false, false) if policy == TaintPolicy::RemoveOnly || (bootstrap && completed) => {
            Decision::NotHeld {
                completes_bootstrap: false,
            }
        }
        (false, false) => held.map_or(Decision::Gate, Decision::Wait),
    }
}

#[cfg(test)]
mod tests {
    use super::Decision::{Gate, Hold, NotHeld, Release, Wait};
    use super::*;

    #[test]
    fn the_table() {
        use EnforcementMode::{BootstrapOnly as B, Continuous as C};
        use TaintPolicy::{AddAndRemove as Add, RemoveOnly as Remove};
        let release = |completes_bootstrap| Release {
            completes_bootstrap,
        };
        let not_held = |completes_bootstrap| NotHeld {
            completes_bootstrap,
        };
        for (mode, policy, met, tainted, completed, expected) in [
            (C, Add, true, true, false, release(false)),
            (C, Add, true, false, false, not_held(false)),
            (C, Add, false, true, false, Hold),
            (C, Add, false, false, false, Gate),
            (C, Remove, true, true, false, release(false)),
            (C, Remove, true, false, false, not_held(false)),
            (C, Remove, false, true, false, Hold),
            (C, Remove, false, false, false, not_held(false)),
            (B, Add, true, true, false, release(true)),
            (B, Add, true, true, true, release(false)),
            (B, Add, true, false, false, not_held(true)),
            (B, Add, true, false, true, not_held(false)),
            (B, Add, false, true, false, Hold),
            (B, Add, false, true, true, Hold),
            (B, Add, false, false, false, Gate),
            (B, Add, false, false, true, not_held(false)),
            (B, Remove, true, true, false, release(true)),
            (B, Remove, true, false, false, not_held(false)),
            (B, Remove, false, true, true, Hold),
            (B, Remove, false, false, false, not_held(false)),
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
                Gate => Wait(WaitReason::Disruption),
                other => other,
            };
            assert_eq!(held, expected, "{case}, held back");
        }
    }
}
