//! Rules, compiled once: [`Rule`] is a `NodeReadinessRule` made ready for use, [`RuleSet`] all of them in the order in which
//! they govern, [`Ownership`] whose a taint is. Pure: no client, no clock, no async.

mod closings;
mod compile;
mod conflict;
pub mod ownership;
mod rejection;
mod set;
mod startup;
mod taint_key;
#[cfg(test)]
mod tests;

pub use closings::Closings;
pub use compile::{CompiledSpec, Reach, RequiredCondition, Rule};
pub use conflict::Conflict;
pub use ownership::Ownership;
pub use rejection::Rejection;
pub use set::RuleSet;
pub use startup::StartupRecord;
pub use taint_key::is_foreign;
