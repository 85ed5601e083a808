//! What is done for the rules themselves: their finalizers, their deletion, their status, and what each of them does on its
//! nodes.

mod book;
mod outcomes;
mod statuses;
mod work;

pub use book::Rules;
pub use outcomes::Evaluated;
pub use work::RuleWork;
