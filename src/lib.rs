//! Nodegate keeps pods off Kubernetes nodes until everything that the node needs is ready.
//!
//! What is known about a node becomes a *condition*, a rule turns conditions into a *decision* about one taint, and one *plan*
//! merges a node's decisions. The *engine* takes in watch events and returns requests; the *controller* carries both:
//!
//! ```text
//! watches -> Seen -> engine: cache -> condition -> rule -> plan
//!         -> Effect -> requests (one JSON patch per plan), events, rule status
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`api`] | the `NodeReadinessRule` resource as types, and the CRDs generated from them |
//! | [`object`] | the cluster's objects, decoded straight from the wire |
//! | [`selector`] | label selectors and node affinity requirements |
//! | [`condition`] | the sources of a node's conditions (pure) |
//! | [`rule`] | compiled rules, in order of precedence (pure) |
//! | [`repair`] | what happens to a node that is not ready in time (pure) |
//! | [`plan`] | one plan per node, from the decisions of all rules (pure) |
//! | [`guard`] | how fast a rule may gate nodes that are not joining (pure) |
//! | `finding` | what is wrong with rules and what they wait for: one message each (pure) |
//! | [`engine`] | watch events and answers go in, requests come out (pure) |
//! | [`controller`] | connects the engine to the cluster: watches, requests, the lease, metrics |
//! | [`cli`] | the command line for people, `kubectl nodegate` |
//! | [`config`] | the configuration file |
//! | `serve` | HTTP servers: addresses, TLS and certificates, authorization, `/metrics` and tables of metrics |
//! | `webhook` | the validating webhook for rules |
//! | [`reporter`] | the sidecar that checks an endpoint and reports a condition on its Node |
//! | [`cluster`] | the API server: a client, the kinds of objects, paged lists, and watches with visible bookmarks |
//! | [`process`] | how a program starts and ends, its log and its identity |
//! | `text` | texts: cut, escaped and counted, and the addresses of the documentation |
//!
//! The controller and the reporter run on Linux. The command line also runs on macOS and Windows; what these lack is left out there.

#![cfg_attr(
    not(unix),
    allow(dead_code, unused_imports, reason = "only the reporter uses it")
)]

pub mod api;
pub mod cli;
pub mod cluster;
pub mod condition;
pub mod config;
pub mod controller;
pub mod engine;
mod finding;
pub mod guard;
#[allow(
    missing_docs,
    reason = "the fields are named as in the API of Kubernetes"
)]
pub mod object;
pub mod plan;
pub mod process;
pub mod repair;
#[cfg(unix)]
pub mod reporter;
pub mod rule;
pub mod selector;
mod serve;
#[cfg(test)]
mod testing;
mod text;
mod webhook;

pub use serve::metric::Description as MetricDescription;
