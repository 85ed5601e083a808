//! The controller's work for rules themselves: finalizers, deletion, status, and statistics over their nodes.

mod finalizers;
mod outcomes;
mod statuses;
mod work;

pub use finalizers::Rules;
pub use outcomes::Evaluated;
pub use work::RuleWork;
