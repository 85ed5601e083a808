//! Those who act in the cluster beside Nodegate, one a file. Each does what the real one does, as far as Nodegate can see it,
//! and takes its time out of chance.
//!
//! ```text
//! kubelet      registers machines, says that they are Ready, beats, reboots, freezes, dies, returns; starts and ends pods
//! daemon_sets  the `DaemonSet` controller
//! csi          CSI drivers register, by themselves or by their pods
//! scheduler    binds pods
//! workload     somebody's pods
//! reporter     writes a node condition
//! lifecycle    the node lifecycle controller, with eviction by taint
//! garbage      the garbage collector and the pod collector
//! karpenter    claims become nodes, and are replaced
//! operator     people with a script
//! foreign      puts other taints on nodes, writing whole lists
//! undoer       undoes what is done to a taint
//! annotator    forges the controller's annotations
//! ```
//!
//! `due` holds what an actor has to do and when, `ask` its requests, `placement` where pods may run.

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
pub mod workload;

#[cfg(test)]
mod tests;

pub use annotator::{Annotator, Forgery};
pub use csi::{Csi, Driver};
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
pub use workload::Workload;
