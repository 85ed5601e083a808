//! [`Rule`] is a compiled `NodeReadinessRule`, [`RuleSet`] all rules by precedence, [`Ownership`] the record of a taint's owner.

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

pub use compile::{CompiledSpec, Reach, Rule};
pub use ownership::Ownership;
pub use rejection::Rejection;
pub use requirement::{Minimum, RequiredCondition};
pub use set::{MOST_COMPONENTS, RuleSet, limit_components};
pub use stray::WhyStray;
pub use taint_key::is_foreign;
pub use would_gate::WouldGate;
