//! Nodegate keeps pods off Kubernetes nodes until everything the node needs is really there.
//!
//! Whatever is known about a node becomes a *condition*, rules turn conditions into a *decision* about one taint,
//! and one writer per node carries decisions out:
//!
//! ```text
//! watches -> controller's cache -> condition (what is true of a node) -> rule (what follows) -> NodePlan
//!         -> controller's writer (one JSON patch per plan) -> events, rule status
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`api`] | the `NodeReadinessRule` resource, as types; the CRD is generated from them |
//! | [`object`] | what is read of Nodes, Pods, `DaemonSet`s and `CSINode`s, decoded straight from the wire |
//! | [`selector`] | label selectors and node affinity requirements |
//! | [`condition`] | where a node's conditions come from (pure) |
//! | [`rule`] | rules compiled, evaluated, decided, and merged into one plan per node (pure) |
//! | [`repair`] | what happens to a node that does not get ready in time (pure) |
//! | [`guard`] | how fast a rule may close nodes that were open (pure) |
//! | [`engine`] | what is certain, and when something is tried again, waits or gives way (pure) |
//! | [`config`] | the configuration file |
//! | [`serve`] | what listens: addresses, TLS and certificates, who may read what, `/metrics` |
//! | [`webhook`] | what the API server asks before it takes a rule |
//! | [`reporter`] | the sidecar that checks an endpoint and reports a condition of its Node |
//! | [`controller`] | caches, the reconcile loop and everything that is written to nodes and rules |
//! | [`metric`] | what metrics there are |
//! | `process` | metrics about this process |
//! | [`reference`] | the reference pages of the documentation, written from the code |
//! | `instance` | who this process is |
//! | `client` | where the cluster is, and how its API server is spoken to |
//! | `causes` | errors in one line |

pub mod api;
mod causes;
mod client;
pub mod condition;
pub mod config;
pub mod controller;
pub mod engine;
pub mod guard;
mod instance;
pub mod metric;
pub mod object;
pub mod plan;
mod process;
pub mod reference;
pub mod repair;
pub mod reporter;
pub mod rule;
pub mod selector;
pub mod serve;
mod shutdown;
#[cfg(test)]
mod testing;
pub mod webhook;
mod wording;
