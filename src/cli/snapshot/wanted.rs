//! What a command wants read. Everything that decides about a node is always read; the less of the rest, the fewer requests.

use crate::object::RuleObject;

/// What a command wants read.
#[derive(Debug, Clone, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each part is wanted or not, whatever becomes of the others"
)]
pub struct Wanted {
    /// Of all nodes only this one, with the pods on it.
    pub node: Option<String>,
    /// Nothing but what says which objects matter: rules, Lease, configuration, and the `DaemonSet`s that rules name.
    pub outline: bool,
    /// The `DaemonSet`s and pods of all critical component classes, whether or not a rule waits for them.
    pub all_classes: bool,
    /// The controller's instances.
    pub controllers: bool,
    /// The controller's limits.
    pub limits: bool,
    /// How nodes started.
    pub startups: bool,
    /// What rules wait for that are not in the cluster.
    pub rules: Vec<RuleObject>,
}

impl Wanted {
    /// What there is of one node.
    #[must_use]
    pub fn of_node(name: &str) -> Self {
        Self {
            node: Some(name.into()),
            ..Self::default()
        }
    }

    /// Nothing but what says which objects matter.
    #[must_use]
    pub fn outline() -> Self {
        Self {
            outline: true,
            ..Self::default()
        }
    }

    /// What there is of all nodes.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }
}
