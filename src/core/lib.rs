//! What decides about one node: pure functions of values, with no client, task or clock. What is known about a node becomes a
//! *condition*, a rule turns conditions into a *decision* about one taint, and one *plan* merges a node's decisions.
//!
//! | module | what it is |
//! |---|---|
//! | [`text`] | texts: cut, escaped and counted, and the addresses of the documentation |
//! | [`backoff`] | when to retry what failed |
//! | [`api`] | the `NodeReadinessRule` resource as types, and the CRDs generated from them |
//! | [`selector`] | label selectors and node affinity requirements |
//! | [`object`] | the cluster's objects, decoded straight from the wire |
//! | [`condition`] | the sources of a node's conditions, and the watches that show what they need |
//! | [`config`] | the configuration file |
//! | [`rule`] | compiled rules, in order of precedence |
//! | [`guard`] | how fast a rule may gate nodes that are not joining |
//! | [`repair`] | what happens to a node that is not ready in time |
//! | [`plan`] | one plan per node, from the decisions of all rules |
//! | [`finding`] | what is wrong with rules and what they wait for: one message each |

#![allow(missing_docs, reason = "a doc says what the name does not")]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests may begin at any time")
)]

#[cfg(test)]
extern crate self as nodegate_core;

pub mod api;
pub mod backoff;
pub mod condition;
pub mod config;
pub mod finding;
pub mod guard;
pub mod object;
pub mod plan;
pub mod repair;
pub mod rule;
pub mod selector;
#[cfg(test)]
mod testing;
pub mod text;

#[cfg(test)]
mod circles {
    #[test]
    fn rooms_use_each_other_in_no_circle() {
        let circles = crate::testing::rooms::circles(env!("CARGO_MANIFEST_DIR").as_ref());
        assert!(circles.is_empty(), "{circles:#?}");
    }
}
