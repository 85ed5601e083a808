//! Compilation of rules, and conflicts between them.

mod compile;
mod conflict;
mod stray;

use crate::testing::{RuleBuilder, rule};

/// A rule that waits for a condition.
fn gate(name: &str) -> RuleBuilder {
    rule(name).waits_for("NetworkReady")
}
