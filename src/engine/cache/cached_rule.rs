//! A rule as the cache keeps it.

use std::sync::Arc;

use crate::api::NodeReadinessRuleStatus;
use crate::object::Version;
use crate::rule::Rule;

/// A compiled rule, and what else its object says.
#[derive(Debug)]
pub struct CachedRule {
    pub rule: Arc<Rule>,
    /// Whether its spec suspends it.
    pub suspends: bool,
    /// The object's resource version.
    pub version: Version,
    /// All finalizers, including other controllers'.
    pub finalizers: Vec<String>,
    /// The status as the API server holds it.
    pub status: NodeReadinessRuleStatus,
}
