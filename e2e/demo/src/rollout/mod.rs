//! The demo: nodes join a real control plane, and Nodegate keeps the workload off each until it is ready.
//!
//! ```text
//! cast      who takes part: rules, DaemonSets and workload as manifests, and their names
//! world     what has been seen of the cluster so far (pure)
//! record    what has been seen of one node (pure)
//! report    whether all that was promised really happened, and the summary (pure)
//! table     the nodes as a table (pure)
//! kubelet   what kwok leaves out of a kubelet: the registration of CSI drivers
//! story     what happens, step by step
//! ```

mod cast;
mod kubelet;
mod record;
mod report;
mod story;
mod table;
mod world;

pub use story::tell;
pub use world::World;

/// A telling of this story.
type Show = crate::stage::Show<World>;
