//! The disruption guard limits how fast a rule may gate nodes that it does not hold, so that a broken reporter cannot take away a
//! cluster's capacity. The states of zones and their effects are those of the Kubernetes node lifecycle controller
//! (`pkg/controller/nodelifecycle/node_lifecycle_controller.go`), except that they depend only on the present nodes, never on
//! an earlier state. Nothing here gates a node, knows a taint or reads a clock, and releasing nodes is never limited.

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
pub use zone::Zone;
