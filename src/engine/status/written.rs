//! Tracks the status that was last written, and whether someone else has overwritten it: another controller of these rules,
//! `kubectl edit --subresource=status`, a restored backup.

use nodegate_core::api::NodeReadinessRuleStatus;
use nodegate_core::object::Version;

#[derive(Debug, Default)]
pub struct WrittenStatus {
    status: Option<NodeReadinessRuleStatus>,
    /// The rule's version with it; `None` while the write is under way.
    version: Option<Version>,
    /// What the API server kept of it: an older CRD prunes fields.
    kept: Option<NodeReadinessRuleStatus>,
    overwritten: bool,
}

impl WrittenStatus {
    /// Notes a write that is about to be made, or would change nothing.
    pub fn writes(&mut self, status: NodeReadinessRuleStatus) {
        *self = Self {
            status: Some(status),
            ..Self::default()
        };
    }

    /// The write succeeded and gave the rule this version.
    pub fn was_answered(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// The write may have failed.
    pub fn failed(&mut self) {
        *self = Self::default();
    }

    /// Takes in the rule's status from a watch; returns whether someone else has overwritten ours.
    pub fn shown(&mut self, status: &NodeReadinessRuleStatus, version: Version) -> bool {
        let (Some(ours), Some(at)) = (&self.status, self.version) else {
            return false;
        };
        if version == at {
            self.kept = (status != ours).then(|| status.clone());
        } else if version > at {
            self.overwritten = self.kept.as_ref().unwrap_or(ours) != status;
        }
        self.overwritten
    }

    /// Whether the rule in this version shows what was last written, or something newer.
    pub fn is_seen_as_of(&self, version: Version) -> bool {
        self.version.is_none_or(|written| written <= version)
    }

    /// The status that was last written; if it is unknown, the one that the rule has.
    pub fn or<'a>(&'a self, held: &'a NodeReadinessRuleStatus) -> &'a NodeReadinessRuleStatus {
        self.status.as_ref().unwrap_or(held)
    }

    /// Whether the API server pruned what was last written. Once a newer CRD is there, writing it again is no longer in vain.
    pub fn is_pruned(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether this status was written as a whole and has not been overwritten.
    pub fn stands_as(&self, status: &NodeReadinessRuleStatus) -> bool {
        !self.overwritten && !self.is_pruned() && self.status.as_ref() == Some(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodegate_core::api::NodegateStatus;

    fn status(held: i32) -> NodeReadinessRuleStatus {
        NodeReadinessRuleStatus {
            nodegate: Some(NodegateStatus {
                held_nodes: held,
                ..NodegateStatus::default()
            }),
            ..NodeReadinessRuleStatus::default()
        }
    }

    /// Any status, pruned by an older CRD.
    fn pruned() -> NodeReadinessRuleStatus {
        NodeReadinessRuleStatus::default()
    }

    fn written(held: i32, version: Version) -> WrittenStatus {
        let mut written = WrittenStatus::default();
        written.writes(status(held));
        written.was_answered(version);
        written
    }

    #[test]
    fn a_status_written_by_others_is_recognized() {
        #[rustfmt::skip]
        let cases = [
            ("ours", &[(5, status(1))][..], false),
            ("from before", &[(4, status(9))], false),
            ("the spec changed", &[(5, status(1)), (6, status(1))], false),
            ("another's", &[(5, status(1)), (6, status(9))], true),
            ("another's, ours unseen", &[(6, status(9))], true),
            ("another's, undone", &[(6, status(9)), (7, status(1))], false),
            ("ours, pruned", &[(5, pruned())], false),
            ("ours, pruned, the spec changed", &[(5, pruned()), (6, pruned())], false),
            ("another's, pruned", &[(5, pruned()), (6, status(9))], true),
        ];
        for (name, shown, overwritten) in cases {
            let mut written = written(1, 5);
            for (version, status) in shown {
                written.shown(status, *version);
            }
            assert_eq!(written.overwritten, overwritten, "{name}");
            assert_eq!(written.status, Some(status(1)), "{name}");
        }
    }

    #[test]
    fn a_status_found_at_start_can_be_overwritten() {
        let mut written = WrittenStatus::default();
        written.writes(status(1));
        written.was_answered(5);
        assert!(written.stands_as(&status(1)));
        assert!(written.shown(&status(9), 6));
    }
}
