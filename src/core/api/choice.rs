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
        BootstrapOnly = "bootstrap-only",
        Continuous = "continuous",
    }
}

words! {
    /// What a taint does to pods that do not tolerate it.
    pub enum TaintEffect {
        NoSchedule = "NoSchedule",
        PreferNoSchedule = "PreferNoSchedule",
        NoExecute = "NoExecute",
    }
}

words! {
    /// What a rule may do with its taint.
    #[derive(Default)]
    pub enum TaintPolicy {
        #[default]
        AddAndRemove = "add-and-remove",
        RemoveOnly = "remove-only",
    }
}

words! {
    /// What a bootstrap-only rule does with nodes that are older than the rule.
    #[derive(Default)]
    pub enum ExistingNodes {
        #[default]
        Gate = "Gate",
        Leave = "Leave",
    }
}

words! {
    /// After what a completed bootstrap no longer counts.
    pub enum RegateOn {
        Reboot = "Reboot",
        Maintenance = "Maintenance",
        Revision = "Revision",
    }
}
