//! The disruption guard limits how fast a rule may close open nodes, so that a broken reporter cannot take away a cluster's
//! capacity. The states of zones and their effects are those of the Kubernetes node lifecycle controller
//! (`pkg/controller/nodelifecycle/node_lifecycle_controller.go`), except that they depend only on the present nodes, never on
//! an earlier state. Nothing here closes a node, knows a taint or reads a clock, and opening nodes is never limited.

mod limits;
mod member;
mod nodes;
mod report;
#[cfg(test)]
mod tests;
mod zone;
mod zones;

pub use limits::{GuardArgs, Limits};
pub use member::Member;
pub(crate) use report::Report;
pub use zone::Zone;
pub(crate) use zone::ZoneState;
pub(crate) use zones::Guard;
