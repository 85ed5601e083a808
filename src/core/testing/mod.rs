//! Builders for tests of decisions: objects written in one line, and a [`World`] around one node.
//!
//! Every builder holds an object's JSON and decodes it through its wire type, so a test sees what the controller would see.
//! Only tests use this module; it is part of each crate that has such tests.

#![allow(dead_code, unused_imports, reason = "each crate uses a part of it")]

mod builders;
pub(crate) mod rooms;
mod world;

pub(crate) use builders::{
    Builder, CsiNodeBuilder, DaemonSetBuilder, GATE, NodeBuilder, PodBuilder, RuleBuilder, at,
    csi_node, daemon_set, moment, node, pod, rule,
};
use nodegate_core::object::{Kept, ObjectKey, State};
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
