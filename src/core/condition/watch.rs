//! The watches that decisions depend on.

use std::time::Duration;

use super::groups::CriticalComponentClass;
use super::seen::Watch;
use crate::selector::Filter;

/// The timeout of a watch request. The API server sends a bookmark 2 s before: `nextBookmarkTime` of its `cache_watcher.go`.
pub const WATCH_LENGTH: Duration = Duration::from_secs(14);

impl Watch {
    pub fn kind(self) -> &'static str {
        self.resource().kind()
    }

    /// The resource's name with its group, for logs and metrics of watches.
    pub fn name(self) -> &'static str {
        self.resource().full_name()
    }

    pub fn is_optional(self) -> bool {
        self != Self::Rules && self.resource().may_be_absent()
    }
}

impl CriticalComponentClass {
    /// What a watch of the class selects: `DaemonSet`s of all namespaces, to report those outside; bound pods that have not ended.
    pub fn filter(&self, watch: Watch) -> Filter {
        let labelled = Filter::labelled(self.selector.clone());
        match watch {
            Watch::Pods(_) => (labelled.within(self.namespaces.single()).bound()).unfinished(),
            _ => labelled,
        }
    }
}
