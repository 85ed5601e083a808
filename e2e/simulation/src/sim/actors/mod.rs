//! The actors in the cluster beside Nodegate, one a file. Each does what the real one does, as far as Nodegate can observe it,
//! and draws its delays from the seed.

pub mod annotator;
pub mod ask;
pub mod csi;
pub mod daemon_sets;
pub mod due;
pub mod foreign;
pub mod garbage;
pub mod karpenter;
pub mod kubelet;
pub mod lifecycle;
pub mod operator;
pub mod placement;
pub mod reporter;
pub mod scheduler;
pub mod undoer;
pub mod unlabeller;
pub mod workload;

#[cfg(test)]
mod tests;

pub use annotator::{Annotator, Forgery};
pub use csi::Csi;
pub use daemon_sets::DaemonSets;
pub use foreign::{Foreign, Manner};
pub use garbage::Garbage;
pub use karpenter::{Karpenter, Pool};
pub use kubelet::{Deed, Kubelets, Machine, machines};
pub use lifecycle::Lifecycle;
pub use operator::Operator;
pub use reporter::{Order, Reporter, Which};
pub use scheduler::Scheduler;
pub use undoer::Undoer;
pub use unlabeller::Unlabeller;
pub use workload::Workload;
