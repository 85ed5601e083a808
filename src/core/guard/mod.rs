//! The disruption guard limits how fast a rule gates nodes that it does not hold, so that a broken reporter cannot take away a
//! cluster's capacity. Zone states are those of `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, except that they
//! depend only on the present nodes, never on an earlier state. Releasing nodes is never limited.

mod bucket;
mod grants;
mod limits;
mod report;
#[cfg(test)]
mod tests;
mod zone;

pub use bucket::TokenBucket;
pub use grants::{Guard, Member};
pub use limits::Limits;
pub use report::Report;
pub use zone::{Zone, Zones};
