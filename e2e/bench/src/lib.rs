//! What `make bench` measures: how fast a controller moves taints, and what that costs, observed from outside.
//!
//! ```text
//! plan      the phases and their sizes
//! run       one cluster of a given size, and the phases in it one after another
//! limit     how fast the client itself makes the controller's writes
//! gates     the phases about a rule that waits for a reported condition
//! critical  the phases about rules that wait for critical components
//! world     the nodes, `DaemonSet`s, pods and rules
//! churn     unrelated writes
//! load      the client's own writes
//! view      the state that the watches show, with times
//! subject   the controller as a process: its CPU and memory
//! requests  the controller's requests, from the audit log
//! measure   quantiles and spread
//! results   the results, as lines and a table
//! ```
//!
//! `ask` measures the commands of `kubectl nodegate`.

#![allow(
    clippy::missing_errors_doc,
    reason = "only its programs and its test call this, and end with the error"
)]

mod ask;
mod churn;
mod critical;
mod gates;
mod limit;
mod load;
mod measure;
mod plan;
mod requests;
mod results;
mod run;
mod subject;
mod view;
mod world;

pub use ask::{Asked, ask, costs};
pub use plan::{Phase, Plan};
pub use results::{Results, Run, markdown};
pub use run::run;
pub use subject::Recipe;
