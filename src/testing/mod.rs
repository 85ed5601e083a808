//! Builders for tests of what decides: objects written down in a line, and a [`World`] around one node.
//!
//! Every builder holds the JSON of an object and decodes it through its wire type, so that a test sees what the
//! controller would see. Nothing here is part of the product.

mod builders;
mod world;

pub use builders::{
    Builder, CRITICAL, CsiNodeBuilder, DaemonSetBuilder, GATE, NodeBuilder, PodBuilder,
    RuleBuilder, at, csi_node, daemon_set, moment, node, pod, rule,
};
pub use world::{ConditionAnswer, World, configured_world, world};
