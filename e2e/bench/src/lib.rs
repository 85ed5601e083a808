//! What `make bench` measures: how fast a controller moves taints, and what that costs, seen from outside.
//!
//! ```text
//! ask       what the commands of `kubectl nodegate` cost, apart from all the rest
//! plan      the phases, and how much of each
//! run       one cluster of so many nodes, and the phases in it one after another
//! limit     how fast the client itself makes the writes that the controller has to make
//! gates     the phases around a rule that waits for a reported condition
//! critical  the phases around rules that wait for critical components
//! birth     the phase that counts what is bound before a gate is there, in clusters of its own
//! world     the nodes, `DaemonSet`s, pods and rules
//! churn     unrelated writes
//! load      the client's own writes
//! view      what the watches show, and since when
//! subject   the controller as a process: its CPU and memory
//! requests  the controller's requests, by the audit log
//! relay     the bytes that they take
//! measure   quantiles and spread
//! results   what came out, as JSON
//! targets   what Nodegate aims at
//! report    what came out, as lines and a page
//! overview  its table of what matters most
//! table     tables, and figures in them
//! hollow    apart from all that: hollow kubelets, by `make bench-hollow`
//! plots     which charts there are
//! ```
//!
//! What `make bench-karpenter` measures is in [`karpenter`].

mod ask;
mod birth;
mod churn;
mod critical;
mod gates;
pub mod hollow;
pub mod karpenter;
mod limit;
mod load;
mod measure;
mod overview;
mod plan;
mod plots;
mod relay;
mod report;
mod requests;
mod results;
mod run;
mod subject;
mod table;
mod targets;
mod view;
mod world;

pub use ask::{Asked, ask, costs};
pub use plan::{Phase, Plan};
pub use plots::plots;
pub use report::markdown;
pub use results::{Births, Results};
pub use run::run;
pub use subject::Recipe;
