//! Compiled rules: [`Rule`] is a compiled `NodeReadinessRule`, [`RuleSet`] all rules in order of precedence, and [`Ownership`]
//! the record of who owns a taint. Pure: no client, no clock, no async.

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
