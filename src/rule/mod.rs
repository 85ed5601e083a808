//! Compiled rules: [`Rule`] is a compiled `NodeReadinessRule`, [`RuleSet`] all rules in order of precedence, and [`Ownership`]
//! the record of who owns a taint. Pure: no client, no clock, no async.

mod compile;
mod conflict;
pub mod ownership;
mod rejection;
mod requirement;
mod set;
mod stray;
mod taint_key;
#[cfg(test)]
mod tests;
mod would_gate;

pub use compile::Rule;
pub(crate) use compile::{CompiledSpec, Reach};
pub use ownership::Ownership;
pub(crate) use rejection::Rejection;
pub(crate) use requirement::{Minimum, RequiredCondition};
#[cfg(test)]
pub(crate) use set::MOST_COMPONENTS;
pub use set::RuleSet;
pub(crate) use stray::WhyStray;
pub(crate) use taint_key::is_foreign;
pub use would_gate::WouldGate;
