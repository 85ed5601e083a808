//! The controller's work for rules themselves: finalizers, deletion, status, and statistics over their nodes.

mod finalizers;
mod outcomes;
mod statuses;
mod work;

pub(super) use finalizers::Rules;
pub(super) use outcomes::Evaluated;
pub(super) use work::RuleWork;
