//! The demo: nodes join a real control plane, and Nodegate keeps the workload off each until it is ready.
//!
//! ```text
//! cast      who takes part: rules, DaemonSets and workload as manifests, and their names
//! world     what has been seen of the cluster so far (pure)
//! record    what has been seen of one node (pure)
//! report    whether all that was promised really happened, and the summary (pure)
//! table     the nodes as a table (pure)
//! layout    text that fits a terminal's width (pure)
//! screen    the terminal: a block that is redrawn in place, or plain lines
//! show      watches, world and screen together
//! kubelet   what kwok leaves out of a kubelet: the registration of CSI drivers
//! story     what happens, step by step
//! ```

mod cast;
mod kubelet;
mod layout;
mod record;
mod report;
mod screen;
mod show;
mod story;
mod table;
mod world;

pub use show::Show;
pub use story::tell;
