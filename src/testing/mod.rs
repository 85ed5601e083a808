//! Builders for tests of decisions: objects written in one line, and a [`World`] around one node.
//!
//! Every builder holds an object's JSON and decodes it through its wire type, so a test sees what the controller would see.
//! Only tests use this module.

mod builders;
mod world;

use crate::object::{Kept, ObjectKey, State};
pub(crate) use builders::{
    Builder, CsiNodeBuilder, DaemonSetBuilder, GATE, NodeBuilder, PodBuilder, RuleBuilder, at,
    csi_node, daemon_set, moment, node, pod, rule,
};
pub(crate) use world::{ConditionAnswer, World, configured_world, world};

/// A value as the caches keep it; decisions do not go by the key.
pub(crate) fn kept<T>(value: T) -> Kept<T> {
    let key = ObjectKey::new("", "");
    let version = 1;
    Kept::from(State {
        key,
        version,
        value,
    })
}
