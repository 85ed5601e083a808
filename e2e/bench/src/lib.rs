//! What `make bench` measures: how fast a controller moves taints, and what that costs, observed from outside.
//!
//! ```text
//! plan      the phases and their sizes
//! run       one cluster of a given size, and the phases in it one after another
//! limit     how fast the client itself makes the controller's writes
//! gates     the phases about a rule that waits for a reported condition
//! critical  the phases about rules that wait for critical components
//! birth     counts pods bound before a gate is there, in its own clusters
//! world     the nodes, `DaemonSet`s, pods and rules
//! churn     unrelated writes
//! load      the client's own writes
//! view      the state that the watches show, with times
//! subject   the controller as a process: its CPU and memory
//! requests  the controller's requests, from the audit log
//! relay     the bytes of these requests
//! measure   quantiles and spread
//! results   the results
//! targets   Nodegate's targets
//! report    the results, as lines and a page
//! overview  the page's summary table
//! table     tables, and figures in them
//! ```
//!
//! `ask` measures the commands of `kubectl nodegate`.

mod ask;
mod birth;
mod churn;
mod critical;
mod gates;
mod limit;
mod load;
mod measure;
mod overview;
mod plan;
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
pub use report::markdown;
pub use results::{Births, Results, Run};
pub use run::run;
pub use subject::Recipe;
