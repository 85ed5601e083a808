//! A rule as the cache keeps it.

use std::sync::Arc;

use crate::api::NodeReadinessRuleStatus;
use crate::object::Version;
use crate::rule::Rule;

/// What one rule's object says beyond its compiled form.
#[derive(Debug)]
pub struct CachedRule {
    /// The rule, compiled.
    pub rule: Arc<Rule>,
    /// Whether its spec has it suspended.
    pub suspends: bool,
    /// The version of this state.
    pub version: Version,
    /// All finalizers on the object, ours or not.
    pub finalizers: Vec<String>,
    /// The status as the API server holds it.
    pub status: NodeReadinessRuleStatus,
}
