//! What has to be read, by what rules wait for.

use crate::cli::snapshot::Wanted;
use crate::condition::{CriticalComponentClass, Source};
use crate::object::RuleObject;
use crate::rule::Rule;

/// What has to be read.
pub struct Needs {
    /// The `DaemonSet`s and pods of each class.
    pub classes: Vec<bool>,
    /// The `CSINode`s.
    pub csi_nodes: bool,
    /// Karpenter's objects.
    pub karpenter: bool,
}

impl Needs {
    /// Whether there is something here that the other does not have read.
    pub fn exceed(&self, other: &Self) -> bool {
        let mut classes = self.classes.iter().zip(&other.classes);
        classes.any(|(own, others)| *own && !others)
            || self.csi_nodes && !other.csi_nodes
            || self.karpenter && !other.karpenter
    }

    /// What has to be read for these rules, and for what a command wants.
    pub fn of(rules: &[RuleObject], classes: &[CriticalComponentClass], wanted: &Wanted) -> Self {
        if wanted.outline {
            return Self {
                classes: vec![false; classes.len()],
                csi_nodes: false,
                karpenter: false,
            };
        }
        let rules: Vec<Rule> = rules
            .iter()
            .chain(&wanted.rules)
            .map(|rule| Rule::compile(&rule.metadata, rule.spec.clone(), classes))
            .collect();
        let specs = || rules.iter().flat_map(|rule| &rule.spec);
        let waits = |class| wanted.all_classes || specs().any(|it| it.waits_for_class(class));
        let classes: Vec<bool> = (0..classes.len()).map(waits).collect();
        let mut required = specs().flat_map(|spec| &spec.conditions);
        let is_of_a_driver = required.any(|it| matches!(it.source, Source::CsiDriver(_)));
        Self {
            csi_nodes: is_of_a_driver || classes.contains(&true),
            karpenter: wanted.all_classes
                || wanted.startups
                || specs().any(|spec| spec.repair.is_some()),
            classes,
        }
    }
}
