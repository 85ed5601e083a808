//! Nodegate keeps pods off Kubernetes nodes until everything the node needs is really there.
//!
//! Whatever is known about a node becomes a *condition*, rules turn conditions into a *decision* about one taint, and all that
//! follows for a node is one *plan*. The *engine* takes what was seen and says which requests to make; the *controller* carries:
//!
//! ```text
//! watches -> Seen -> engine: cache -> condition (what is true of a node) -> rule -> plan (what follows)
//!         -> Effect -> requests (one JSON patch per plan), events, rule status
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`api`] | the `NodeReadinessRule` resource, as types; the CRD is generated from them |
//! | [`object`] | what is read of Nodes, Pods, `DaemonSet`s and `CSINode`s, decoded straight from the wire |
//! | [`selector`] | label selectors and node affinity requirements |
//! | [`condition`] | where a node's conditions come from (pure) |
//! | [`rule`] | rules compiled, and in the order in which they govern (pure) |
//! | [`repair`] | what happens to a node that does not get ready in time (pure) |
//! | [`plan`] | what follows for one node: evaluated, decided, merged into one plan (pure) |
//! | [`guard`] | how fast a rule may close nodes that were open (pure) |
//! | [`engine`] | the machine: what was seen and answered goes in, requests come out (pure) |
//! | [`controller`] | what carries between the engine and the cluster: watches, requests, the lease, metrics |
//! | [`cli`] | the command line for people, `kubectl nodegate` |
//! | [`config`] | the configuration file |
//! | `serve` | what listens: addresses, TLS and certificates, who may read what, `/metrics` |
//! | `webhook` | what the API server asks before it accepts a rule |
//! | [`reporter`] | the sidecar that checks an endpoint and reports a condition of its Node |
//! | `bucket` | a token bucket |
//! | `metric` | a registry of metrics |
//! | `process` | metrics about this process |
//! | [`reference`] | the reference pages of the documentation, written from the code |
//! | `instance` | who this process is |
//! | `client` | where the cluster is, and how requests to its API server are made |
//! | `wording` | how texts and lists are cut off |
//! | `causes` | errors in one line |

pub mod api;
mod bucket;
mod causes;
pub mod cli;
mod client;
pub mod condition;
pub mod config;
pub mod controller;
pub mod engine;
pub mod guard;
mod instance;
mod metric;
pub mod object;
pub mod plan;
mod process;
pub mod reference;
pub mod repair;
pub mod reporter;
pub mod rule;
pub mod selector;
mod serve;
mod shutdown;
#[cfg(test)]
mod testing;
mod webhook;
mod wording;
