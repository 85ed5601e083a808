//! All rules, in order of precedence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::compile::{CompiledSpec, Rule};
use super::ownership::Ownership;
use super::rejection::Rejection;
use super::taint_key::is_foreign;
use crate::api::RegateOn;
use crate::condition::{
    Component, LABELS_LAST, NamedComponent, NodeLabels, Observations, PassingTaints, Recall,
    Source, Watch,
};
use crate::object::{Node, NodeCondition, ObjectKey};

/// All rules of the cluster. Of two rules with the same taint key and effect, the earlier one in this order governs.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    rules: Vec<Arc<Rule>>,
    /// Deleted rules that this process remembers.
    pub former: Vec<Arc<Rule>>,
    /// The taints that will go, including those that rules manage.
    pub passing: PassingTaints,
    /// The condition types on Nodes whose heartbeats some rule needs.
    pub followed: BTreeSet<Arc<str>>,
    /// The condition types that were seen to be renewed on a node that a rule with a heartbeat timeout selects, by the rule's UID.
    pub beating: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    pub counted: BTreeSet<Arc<str>>,
    /// UIDs of the rules with a `repair`.
    pub repairing: BTreeSet<Arc<str>>,
}

/// How many components rules may name together, at two watches each.
pub const MOST_COMPONENTS: usize = 64;

/// Rejects the rules that, with those before them, name too many components, and takes back the others. These must be all rules.
pub fn limit_components<'r>(rules: impl IntoIterator<Item = &'r mut Arc<Rule>>) {
    let mut rules: Vec<_> = rules.into_iter().filter(|rule| !rule.deleting).collect();
    rules.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
    let mut named: BTreeSet<Component> = BTreeSet::new();
    for rule in rules {
        let mut limited = Rule::clone(rule);
        if let Err(Rejection::TooManyComponents(spec)) = limited.spec {
            limited.spec = Ok(*spec);
        }
        let own = limited.spec.iter().flat_map(CompiledSpec::components);
        let all: BTreeSet<_> = own.chain(&named).cloned().collect();
        if all.len() <= MOST_COMPONENTS {
            named = all;
        } else {
            let reject = |spec| Err(Rejection::TooManyComponents(Box::new(spec)));
            limited.spec = limited.spec.and_then(reject);
        }
        if rule.spec != limited.spec {
            limited.in_force_since = None;
            *rule = limited.into();
        }
    }
}

impl RuleSet {
    /// `passing_taints` are the configured keys of other projects' startup taints.
    pub fn new(rules: impl IntoIterator<Item = Arc<Rule>>, passing_taints: Vec<String>) -> Self {
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
        let mut set = Self {
            passing: PassingTaints {
                configured: passing_taints,
                managed: Vec::new(),
            },
            ..Self::default()
        };
        for rule in &rules {
            // A rule that still waits for its finalizer counts. Otherwise its taint would shut out DaemonSets, and a node that
            // waits for them under another rule would be released.
            let spec = rule.spec.as_ref().ok();
            let is_in_force = spec.is_some_and(|spec| !spec.dry_run);
            if let Some(reach) = &rule.reach {
                // The taints that a deleted rule leaves behind are about to be removed.
                let is_leaving = rule.deleting && spec.is_none() && reach.is_removed_in_the_end;
                if is_in_force || is_leaving {
                    let effect = (!is_foreign(&reach.key)).then_some(reach.effect);
                    set.passing.managed.push((reach.key.clone(), effect));
                }
            }
            if spec.is_some_and(|spec| spec.ours.repair.is_some()) {
                set.repairing.insert(rule.uid.clone());
            }
            let Some(spec) = rule.active() else {
                continue;
            };
            let needs_heartbeats = spec.ours.heartbeat_timeout.is_some()
                || spec.ours.regate_on.contains(&RegateOn::Reboot);
            if needs_heartbeats {
                set.followed.extend(spec.reported().cloned());
            }
            for requirement in &spec.conditions {
                let counted = requirement.counted_resource();
                set.counted.extend(counted.map(Arc::<str>::from));
            }
        }
        set.rules = rules;
        set
    }

    /// Notes which conditions of this node are renewed, given its state before, for the rules at these indices; returns whether
    /// that is news for any of them.
    pub fn see_beats(
        &mut self,
        known: Option<&Node>,
        node: &Node,
        is_meant: impl Fn(usize) -> bool,
    ) -> bool {
        let known = known.filter(|known| known.uid == node.uid);
        let before = |kind: &str| known.and_then(|known| known.condition(kind));
        let beats = |it: &NodeCondition| it.beats(before(&it.kind));
        let mut is_news = false;
        for (index, rule) in self.rules.iter().enumerate() {
            let spec = rule.active().filter(|_| is_meant(index));
            let Some(spec) = spec.filter(|it| it.ours.heartbeat_timeout.is_some()) else {
                continue;
            };
            for kind in spec.reported() {
                let beating = self.beating.get(&rule.uid);
                // The selector last, since it may be long.
                if node.condition(kind).is_some_and(beats)
                    && beating.is_none_or(|it| !it.contains(kind))
                    && spec.selector.matches(&node.labels)
                {
                    let beating = self.beating.entry(rule.uid.clone()).or_default();
                    is_news |= beating.insert(kind.clone());
                }
            }
        }
        is_news
    }

    /// Whether an annotation names an existing rule with a taint that is not that rule's.
    pub fn disproves(&self, owner: &Ownership<'_>) -> bool {
        self.rules.iter().any(|rule| {
            *rule.uid == *owner.rule_uid
                && rule.reach.is_some()
                && !rule.is_about(owner.taint_key, owner.taint_effect)
        })
    }

    /// Whether the annotation names a deleted rule that this process remembers, with its taint.
    pub fn remembers(&self, owner: &Ownership<'_>) -> bool {
        self.former.iter().any(|rule| {
            *rule.uid == *owner.rule_uid && rule.is_about(owner.taint_key, owner.taint_effect)
        })
    }

    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// Indices of the active rules whose selectors match the node. `known`: whether the one at an index does, as far as known.
    pub fn matching(&self, node: &Node, known: impl Fn(usize) -> Option<bool>) -> Vec<usize> {
        let selects = |index: &usize| {
            let spec = self.rules[*index].active();
            let matches = |spec: &CompiledSpec| spec.selector.matches(&node.labels);
            known(*index).unwrap_or_else(|| spec.is_some_and(matches))
        };
        (0..self.rules.len()).filter(selects).collect()
    }

    /// Indices of the active rules that select the node, given those that match; and of those that did so until a moment before
    /// this time and hold it, unless another one has the same taint there now.
    pub fn recalled(
        &self,
        mut selecting: Vec<usize>,
        node: &Node,
        observations: &Observations,
        now: Timestamp,
    ) -> Vec<usize> {
        if !observations.recall_anything(now) {
            return selecting;
        }
        let recall = Recall::new(observations, now);
        let labels = NodeLabels::new(node, Some(&recall));
        let owns = |rule: &Rule| Ownership::all(node).any(|it| *it.rule_uid == *rule.uid);
        for (index, rule) in self.rules.iter().enumerate() {
            let Some(spec) = rule.live() else { continue };
            let has_the_taint = |it: &usize| {
                let other = self.rules[*it].live();
                other.is_some_and(|other| other.taint.is(&spec.taint.key, spec.effect))
            };
            if node.taint(&spec.taint.key, spec.effect).is_some()
                && (labels.matches(&spec.selector)
                    || !rule.edited && owns(rule) && recall.before(LABELS_LAST))
                && !selecting.iter().any(has_the_taint)
            {
                selecting.push(index);
            }
        }
        selecting.sort_unstable();
        selecting
    }

    pub fn at<'s>(&'s self, indices: &'s [usize]) -> impl Iterator<Item = &'s Arc<Rule>> {
        indices.iter().map(|index| &self.rules[*index])
    }

    pub fn components(&self) -> BTreeSet<Component> {
        let rules = self.rules.iter().filter(|rule| !rule.deleting);
        let specs = rules.flat_map(|rule| &rule.spec);
        specs.flat_map(CompiledSpec::components).cloned().collect()
    }

    /// Whether any rule depends on what this watch shows, which is not of what rules name.
    pub fn depends_on(&self, watch: Watch) -> bool {
        let rules = self.rules.iter().filter(|rule| !rule.deleting);
        let mut specs = rules.flat_map(|rule| &rule.spec);
        specs.any(|spec| spec.depends_on(watch, &[]))
    }
}

impl CompiledSpec {
    /// Whether the rule waits for critical components, of any class.
    pub fn waits_for_components(&self) -> bool {
        self.sources().any(|it| matches!(it, Source::Class { .. }))
    }

    fn sources(&self) -> impl Iterator<Item = &Source> {
        self.conditions.iter().map(|condition| &condition.source)
    }

    /// The condition types that are reported on the Node.
    pub fn reported(&self) -> impl Iterator<Item = &Arc<str>> {
        let conditions = self.conditions.iter();
        let reported = conditions.filter(|it| it.source == Source::Node);
        reported.map(|it| &it.kind)
    }

    pub fn leaves_out(&self, daemon_set: &ObjectKey) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|it| it.except.contains(daemon_set))
    }

    /// What the rule waits for by name.
    pub fn components(&self) -> impl Iterator<Item = &Component> {
        self.sources().filter_map(Source::component)
    }

    pub fn daemon_sets(&self) -> impl Iterator<Item = &ObjectKey> {
        self.components().filter_map(|component| match component {
            Component::DaemonSet(key) => Some(key),
            _ => None,
        })
    }

    /// Whether decisions for the rule depend on what this watch shows, given what is watched of what rules name.
    pub fn depends_on(&self, watch: Watch, named: &[NamedComponent]) -> bool {
        matches!(watch, Watch::Nodes | Watch::Rules)
            || self.sources().any(|it| it.depends_on(watch, named))
    }

    pub fn waits_for_class(&self, index: usize) -> bool {
        self.sources()
            .any(|it| matches!(it, Source::Class { class, .. } if *class == index))
    }
}
