//! What is one of a few words in a rule.

use super::words::words;

words! {
    /// Status of a node's condition.
    pub enum ConditionStatus {
        /// The condition holds.
        True = "True",
        /// The condition does not hold.
        False = "False",
        /// Nobody knows.
        Unknown = "Unknown",
    }
}

words! {
    /// How many of a rule's conditions have to be met.
    #[derive(Default)]
    pub enum ConditionPolicy {
        /// Every one.
        #[default]
        AllOf = "allOf",
        /// At least one.
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
        /// New pods stay away where they can.
        PreferNoSchedule = "PreferNoSchedule",
        /// New pods stay away, and running ones are evicted.
        NoExecute = "NoExecute",
    }
}

words! {
    /// What a rule may do with its taint.
    #[derive(Default)]
    pub enum TaintPolicy {
        /// Close nodes and open them.
        #[default]
        AddAndRemove = "add-and-remove",
        /// Open nodes that registered with the taint, and never close one.
        RemoveOnly = "remove-only",
    }
}

words! {
    /// What a bootstrap-only rule does about nodes that were there before it.
    #[derive(Default)]
    pub enum ExistingNodes {
        /// Close those that do not meet the conditions, as any other node.
        #[default]
        Gate = "Gate",
        /// Leave them as they are.
        Leave = "Leave",
    }
}
