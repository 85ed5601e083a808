//! Enums of a rule's spec.

use super::words::words;

words! {
    /// Status of a node's condition.
    #[derive(Default)]
    pub enum ConditionStatus {
        True = "True",
        False = "False",
        #[default]
        Unknown = "Unknown",
    }
}

words! {
    /// How many of a rule's conditions must be met.
    #[derive(Default)]
    pub enum ConditionPolicy {
        #[default]
        AllOf = "allOf",
        AnyOf = "anyOf",
    }
}

words! {
    /// When a rule gates nodes.
    pub enum EnforcementMode {
        /// While they start, once.
        BootstrapOnly = "bootstrap-only",
        /// Whenever their conditions are unmet.
        Continuous = "continuous",
    }
}

words! {
    /// What a taint does to pods that do not tolerate it.
    pub enum TaintEffect {
        /// New pods stay away.
        NoSchedule = "NoSchedule",
        /// New pods stay away if possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// New pods stay away, and running ones are evicted.
        NoExecute = "NoExecute",
    }
}

words! {
    /// What a rule may do with its taint.
    #[derive(Default)]
    pub enum TaintPolicy {
        #[default]
        AddAndRemove = "add-and-remove",
        /// Only remove it, from nodes that registered with it.
        RemoveOnly = "remove-only",
    }
}

words! {
    /// What a bootstrap-only rule does with nodes that are older than the rule.
    #[derive(Default)]
    pub enum ExistingNodes {
        /// Gate those that do not meet the conditions, like any other node.
        #[default]
        Gate = "Gate",
        /// Leave them alone.
        Leave = "Leave",
    }
}

words! {
    /// After what a completed bootstrap no longer counts.
    pub enum RegateOn {
        Reboot = "Reboot",
        /// A maintenance of the node has ended.
        Maintenance = "Maintenance",
        /// The pod of a named `DaemonSet` gives way to one of another revision.
        Revision = "Revision",
    }
}
