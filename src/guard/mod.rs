//! The disruption guard: how fast a rule may close nodes that were open. A broken reporter must not be able to take a
//! cluster's capacity away.
//!
//! | file | what it holds |
//! |---|---|
//! | [`limits`](Limits) | the rates and thresholds, from a rule and the command line |
//! | [`zone`](Zone) | which zone a node is in, and what state a zone is in |
//! | [`member`](Member) | how a node counts |
//! | `nodes` | the nodes of one zone, and whose turn it is |
//! | [`zones`](Guard) | all zones together |
//! | [`report`](Report) | what is told about it |
//!
//! The states of zones and what follows from them are those of the Kubernetes node lifecycle controller
//! (`pkg/controller/nodelifecycle/node_lifecycle_controller.go`), except that they follow from the nodes alone and never
//! from an earlier state: whoever has seen the same nodes decides the same. Nothing here closes a node, knows a taint or
//! reads a clock; opening nodes is never limited and not asked about.

mod limits;
mod member;
mod nodes;
mod report;
#[cfg(test)]
mod tests;
mod zone;
mod zones;

pub use limits::{Args, Limits};
pub use member::Member;
pub use report::{Held, Report, ZoneReport};
pub use zone::{Zone, ZoneState, zone_state};
pub use zones::Guard;
