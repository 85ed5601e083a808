//! What is done for the rules themselves: their finalizers, their deletion, their status, and what each of them does on its
//! nodes.

mod finalizers;
mod outcomes;
mod statuses;
mod work;

pub use finalizers::Rules;
pub use outcomes::Evaluated;
pub use work::RuleWork;
