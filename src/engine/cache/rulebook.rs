//! Rules, from watches and write responses.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;

use crate::map::Map;
use nodegate_core::condition::CriticalComponentClass;
use nodegate_core::object::{Kept, Node, RuleObject};
use nodegate_core::rule::{Rule, RuleSet, limit_components};

/// How many deleted rules are remembered.
const FORMER_RULES: usize = 256;

/// When more rules than this change together, all nodes are evaluated: to look for those that it concerns costs as much.
const MANY: usize = 8;

/// Whether a node may depend on a rule: by its labels, taints or records. A new rule may have a deleted one's name.
fn may_concern(rule: &Rule, node: &Node) -> bool {
    let key = rule.reach.as_ref().map(|it| &it.key);
    let is_its = |id: &str| id.ends_with(&*rule.uid) || id.ends_with(&*rule.name);
    rule.selects(&node.labels)
        || node.taints.iter().any(|it| Some(&it.key) == key)
        || node.annotations_about("").any(|(key, _)| is_its(key))
}

#[derive(Debug)]
pub struct CachedRule {
    pub rule: Arc<Rule>,
    pub object: Kept<RuleObject>,
}

#[derive(Debug, Default)]
pub(crate) struct Rulebook {
    pub(crate) all: Map<Arc<str>, CachedRule>,
    former: VecDeque<Arc<Rule>>,
    /// The rules in order, as of the last [`Self::sort`].
    pub set: RuleSet,
    /// Grows whenever `set` changes, and the nodes that this concerns are evaluated again.
    pub generation: u64,
    /// Since which generation each rule of `set` is as it is.
    pub since: Vec<u64>,
    /// Whether all rules are suspended, whatever their specs say.
    pub suspends_all: bool,
    has_changed: bool,
}

impl Rulebook {
    pub(super) fn new(passing_taints: Vec<String>) -> Self {
        Self {
            set: RuleSet::new([], passing_taints),
            generation: 1,
            has_changed: true,
            ..Self::default()
        }
    }

    /// Takes in a rule, seen at this time; returns its name if it was known.
    pub(super) fn put(
        &mut self,
        object: Kept<RuleObject>,
        classes: &[CriticalComponentClass],
        at: Timestamp,
    ) -> Option<Arc<str>> {
        let mut rule = Rule::compile(&object.metadata, object.spec.clone(), classes);
        rule.suspended |= self.suspends_all;
        let known = self.all.get(&rule.name).map(|known| &known.rule);
        let rule = rule.seen(known.map(|known| &**known), at);
        let rule = match known {
            Some(known) if **known == rule => known.clone(),
            _ => {
                self.has_changed = true;
                Arc::new(rule)
            }
        };
        let (name, uid) = (rule.name.clone(), rule.uid.clone());
        let known = self.all.insert(name.clone(), CachedRule { rule, object })?;
        if known.rule.uid != uid {
            self.retire(known.rule);
        }
        Some(name)
    }

    pub(super) fn suspend_all(
        &mut self,
        suspends_all: bool,
        classes: &[CriticalComponentClass],
        now: Timestamp,
    ) {
        // The statuses of rules that are suspended anyway say so, too.
        self.has_changed |= self.suspends_all != suspends_all;
        self.suspends_all = suspends_all;
        let objects: Vec<_> = self.all.values().map(|it| it.object.clone()).collect();
        for object in objects {
            self.put(object, classes, now);
        }
    }

    pub(super) fn refused_finalizer(&mut self, name: &str) {
        if let Some(cached) = self.all.get_mut(name)
            && !cached.rule.refused
        {
            Arc::make_mut(&mut cached.rule).refused = true;
            self.has_changed = true;
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(gone) = self.all.remove(name) {
            self.retire(gone.rule);
            self.has_changed = true;
        }
    }

    /// Remembers a deleted rule: its taints may still be on nodes.
    fn retire(&mut self, rule: Arc<Rule>) {
        self.set.beating.remove(&rule.uid);
        if self.former.len() == FORMER_RULES {
            self.former.pop_front();
        }
        self.former.push_back(rule);
    }

    /// Sorts the rules again, if any has changed; returns then which nodes that may concern: those that a changed rule selects or
    /// selected, and those with its records or a taint of its key, which may be looked through, left behind or handed over. All, if
    /// heartbeats are followed that were not, or the other way round, or if it repairs: its limits count other rules' late nodes.
    pub(super) fn sort(&mut self) -> Option<impl Fn(&Node) -> bool + use<>> {
        if !std::mem::take(&mut self.has_changed) {
            return None;
        }
        limit_components(self.all.values_mut().map(|cached| &mut cached.rule));
        let rules = self.all.values().map(|cached| cached.rule.clone());
        let passing_taints = self.set.passing.configured.clone();
        let mut before = std::mem::replace(&mut self.set, RuleSet::new(rules, passing_taints));
        self.set.beating = std::mem::take(&mut before.beating);
        self.set.former = self.former.iter().cloned().collect();
        self.generation += 1;
        let since = self.set.rules().iter().map(|rule| {
            let known = before.rules().iter().position(|it| it == rule);
            known.map_or(self.generation, |known| self.since[known])
        });
        self.since = since.collect();
        let mut changed: Vec<Arc<Rule>> = Vec::new();
        for (a, b) in [
            (before.rules(), self.set.rules()),
            (&before.former, &self.set.former),
        ] {
            changed.extend(a.iter().filter(|it| !b.contains(it)).cloned());
            changed.extend(b.iter().filter(|it| !a.contains(it)).cloned());
        }
        let repairs = |rule: &Arc<Rule>| rule.spec.iter().any(|it| it.ours.repair.is_some());
        let concerns_all = changed.len() > MANY
            || before.followed != self.set.followed
            || changed.iter().any(repairs);
        Some(move |node: &Node| concerns_all || changed.iter().any(|rule| may_concern(rule, node)))
    }
}
