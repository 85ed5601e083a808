//! While evidence is stale, nothing harmful is done.

use super::{gate, gated, gated_by, unmet};
use crate::condition::Watch;
use crate::testing::{Builder, world};

#[test]
fn a_rule_is_not_let_go_while_a_clean_up_waits() {
    for node in [gated_by(unmet(), "r"), gated(unmet())] {
        let deleting = world(&node)
            .rule(&gate("r").deleting())
            .with_stale(&[Watch::Rules]);
        assert!(
            deleting.write().annotations.is_empty(),
            "what says whose the taint is stays with it"
        );
        let plan = deleting.plan();
        assert_eq!(plan.stale, [Watch::Rules].into());
        assert!(plan.awaits_evidence(&deleting.rules()[0]));
    }
}
