//! Builders for tests of decisions: objects written in one line, and a [`World`] around one node.
//!
//! Every builder holds an object's JSON and decodes it through its wire type, so a test sees what the controller would see.
//! Only tests use this module.

mod builders;
mod world;

pub(crate) use builders::{
    Builder, CRITICAL, CsiNodeBuilder, DaemonSetBuilder, GATE, NodeBuilder, PodBuilder,
    RuleBuilder, at, csi_node, daemon_set, moment, node, pod, rule,
};
pub(crate) use world::{ConditionAnswer, World, configured_world, world};
