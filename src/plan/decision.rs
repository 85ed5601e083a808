//! The table: what a rule that governs a taint on a node does about it.

use jiff::Timestamp;

use crate::api::{EnforcementMode, TaintPolicy};

/// What one rule wants done to one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The conditions are not met and the taint is there: it stays.
    Hold,
    /// The conditions are not met and the taint is missing: put it on.
    Gate,
    /// The conditions are not met and the taint is missing, and it is not time yet to put it on.
    Wait(WaitReason),
    /// The conditions are met and the taint is there: lift it.
    Release {
        /// Whether this completes the node's bootstrap under the rule.
        completes_bootstrap: bool,
    },
    /// The conditions are not met in time and the taint is there: lift it all the same, and leave the node alone from
    /// then on.
    GiveUp,
    /// The taint is not there and need not be.
    Open {
        /// Whether this completes the node's bootstrap under the rule.
        completes_bootstrap: bool,
    },
}

/// What holds a taint back that would close an open node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The conditions have not been unmet for long enough.
    Grace {
        /// When the grace period ends.
        until: Timestamp,
    },
    /// The disruption guard has not let the node go yet.
    Disruption,
    /// What it is decided on may not be so any more: a last look at it comes first.
    Doubt,
}

impl Decision {
    /// Whether the taint is on the node once the decision is carried out.
    #[must_use]
    pub fn holds(self) -> bool {
        matches!(self, Self::Hold | Self::Gate)
    }

    /// Whether the taint is taken off the node.
    #[must_use]
    pub fn lifts(self) -> bool {
        matches!(self, Self::Release { .. } | Self::GiveUp)
    }

    /// Whether the completion annotation is to be written.
    #[must_use]
    pub fn completes_bootstrap(self) -> bool {
        match self {
            Self::Release {
                completes_bootstrap,
            }
            | Self::Open {
                completes_bootstrap,
            } => completes_bootstrap,
            Self::GiveUp => true,
            Self::Hold | Self::Gate | Self::Wait(_) => false,
        }
    }

    /// The decision about a node that is to stay as it is, with the taint or without.
    #[must_use]
    pub fn nothing(tainted: bool) -> Self {
        if tainted {
            Self::Hold
        } else {
            Self::Open {
                completes_bootstrap: false,
            }
        }
    }

    /// What is done instead while the evidence is in doubt: whatever leaves the node as it is. `None` where the decision
    /// cannot hurt.
    ///
    /// `is_new`: the node has come only just now, and runs nothing yet. Such a node is closed all the same.
    #[must_use]
    pub fn in_doubt(self, is_new: bool) -> Option<Self> {
        match self {
            Self::Gate => (!is_new).then_some(Self::Wait(WaitReason::Doubt)),
            Self::Release { .. } | Self::GiveUp => Some(Self::Hold),
            Self::Open {
                completes_bootstrap,
            } => completes_bootstrap.then_some(Self::Open {
                completes_bootstrap: false,
            }),
            Self::Hold | Self::Wait(_) => None,
        }
    }

    /// The decision about a node that may still lack labels: what is met now may not be once it has them.
    #[must_use]
    pub fn without_completion(self) -> Self {
        let completes_bootstrap = false;
        match self {
            Self::Release { .. } => Self::Release {
                completes_bootstrap,
            },
            Self::Open { .. } => Self::Open {
                completes_bootstrap,
            },
            other => other,
        }
    }

    /// The decision about a node whose time is up, where the rule releases such nodes.
    #[must_use]
    pub fn given_up(self) -> Self {
        match self {
            Self::Hold => Self::GiveUp,
            other => other,
        }
    }
}

/// Decides for a rule that governs its taint on a node.
///
/// `met`: the rule's conditions are met. `tainted`: the node has the taint, whoever put it there. `completed`: the
/// node's bootstrap under this rule is on record, which means one thing only: the taint is never added again.
/// `held`: why the node may not be closed yet.
#[must_use]
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
        (true, false) => Decision::Open {
            completes_bootstrap: bootstrap && !completed && policy == TaintPolicy::AddAndRemove,
        },
        (false, true) => Decision::Hold,
        (false, false) if policy == TaintPolicy::RemoveOnly || (bootstrap && completed) => {
            Decision::Open {
                completes_bootstrap: false,
            }
        }
        (false, false) => held.map_or(Decision::Gate, Decision::Wait),
    }
}

#[cfg(test)]
mod tests {
    use super::Decision::{Gate, Hold, Open, Release, Wait};
    use super::*;

    #[test]
    fn the_table() {
        use EnforcementMode::{BootstrapOnly as B, Continuous as C};
        use TaintPolicy::{AddAndRemove as Add, RemoveOnly as Lift};
        let release = |completes_bootstrap| Release {
            completes_bootstrap,
        };
        let open = |completes_bootstrap| Open {
            completes_bootstrap,
        };
        for (mode, policy, met, tainted, completed, expected) in [
            (C, Add, true, true, false, release(false)),
            (C, Add, true, false, false, open(false)),
            (C, Add, false, true, false, Hold),
            (C, Add, false, false, false, Gate),
            (C, Lift, true, true, false, release(false)),
            (C, Lift, true, false, false, open(false)),
            (C, Lift, false, true, false, Hold),
            (C, Lift, false, false, false, open(false)),
            (B, Add, true, true, false, release(true)),
            (B, Add, true, true, true, release(false)),
            (B, Add, true, false, false, open(true)),
            (B, Add, true, false, true, open(false)),
            (B, Add, false, true, false, Hold),
            (B, Add, false, true, true, Hold),
            (B, Add, false, false, false, Gate),
            (B, Add, false, false, true, open(false)),
            (B, Lift, true, true, false, release(true)),
            (B, Lift, true, false, false, open(false)),
            (B, Lift, false, true, true, Hold),
            (B, Lift, false, false, false, open(false)),
        ] {
            let case = format!("{mode} {policy} met={met} tainted={tainted} completed={completed}");
            let decision = decide(mode, policy, met, tainted, completed, None);
            assert_eq!(decision, expected, "{case}");
            // What holds a node back only ever keeps it from being closed.
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
