//! Rules that come after others: the order in which they are decided, and the circles that no order fits.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::compile::{CompiledSpec, Rule};
use super::rejection::Rejection;
use crate::wording::enumerated;

/// The order in which rules are decided, by their indices.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    /// The rules that each rule comes after.
    predecessors: Vec<Vec<usize>>,
    /// Higher than the rank of each rule that it comes after.
    ranks: Vec<usize>,
}

impl Order {
    /// The order of rules that are in no circle.
    pub(super) fn of(rules: &[Arc<Rule>]) -> Self {
        let predecessors = predecessors(rules);
        let ranks = ranks(&predecessors);
        Self {
            ranks: ranks.into_iter().map(Option::unwrap_or_default).collect(),
            predecessors,
        }
    }

    pub(super) fn predecessors(&self, index: usize) -> &[usize] {
        self.predecessors.get(index).map_or(&[], Vec::as_slice)
    }

    pub(super) fn rank(&self, index: usize) -> usize {
        self.ranks.get(index).copied().unwrap_or_default()
    }
}

/// The rules that come after themselves by way of others, or directly, each with its rejection.
pub(super) fn circles(rules: &[Arc<Rule>]) -> Vec<(usize, Rejection)> {
    let predecessors = predecessors(rules);
    let ranks = ranks(&predecessors);
    let unranked = (0..rules.len()).filter(|index| ranks[*index].is_none());
    unranked
        .filter_map(|index| Some((index, rejection(rules, &circle(index, &predecessors)?))))
        .collect()
}

/// Why a rule that is to be created or changed cannot be accepted beside these others: it would close a circle.
pub(crate) fn circle_of<'a>(
    rule: &'a Rule,
    others: impl Iterator<Item = &'a Rule>,
) -> Option<Rejection> {
    let rules: Vec<&Rule> = [rule].into_iter().chain(others).collect();
    Some(rejection(&rules, &circle(0, &predecessors(&rules))?))
}

fn rejection(rules: &[impl Borrow<Rule>], circle: &[usize]) -> Rejection {
    Rejection::Circle(
        circle
            .iter()
            .map(|it| rules[*it].borrow().name.clone())
            .collect(),
    )
}

/// For each rule, those that it comes after: a rule that cannot be used or is being deleted comes after none, and none comes
/// after it.
fn predecessors(rules: &[impl Borrow<Rule>]) -> Vec<Vec<usize>> {
    let usable = |rule: &'_ Rule| !rule.deleting && rule.spec.is_ok();
    let rules = || rules.iter().map(Borrow::borrow);
    let indices: BTreeMap<&str, usize> = rules()
        .enumerate()
        .filter(|(_, rule)| usable(rule))
        .map(|(index, rule)| (&*rule.name, index))
        .collect();
    let of = |rule: &Rule| {
        let spec = rule.spec.iter().filter(|_| usable(rule));
        let names = spec.flat_map(|spec| &spec.after);
        names
            .filter_map(|name| indices.get(&**name).copied())
            .collect()
    };
    rules().map(of).collect()
}

/// The rank of each rule; `None` for one that is in a circle or comes after one that is.
fn ranks(predecessors: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut ranks = vec![None; predecessors.len()];
    loop {
        let mut has_changed = false;
        for (index, before) in predecessors.iter().enumerate() {
            let known = || before.iter().map(|it| ranks[*it]);
            if ranks[index].is_none() && known().all(|rank| rank.is_some()) {
                let rank = known().flatten().map(|rank| rank + 1).max();
                ranks[index] = Some(rank.unwrap_or_default());
                has_changed = true;
            }
        }
        if !has_changed {
            return ranks;
        }
    }
}

/// The shortest circle that a rule is in: itself, then each rule that the one before comes after.
fn circle(index: usize, predecessors: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut seen = BTreeSet::new();
    let mut paths = VecDeque::from([vec![index]]);
    while let Some(path) = paths.pop_front() {
        for next in &predecessors[*path.last()?] {
            if *next == index {
                return Some(path);
            }
            if seen.insert(*next) {
                paths.push_back([path.as_slice(), &[*next]].concat());
            }
        }
    }
    None
}

/// Names in a rule's `after` that hold nothing up on any node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AfterUnknown<'a> {
    /// Those that no rule has.
    pub missing: Vec<&'a str>,
    /// Those of rules that are not accepted.
    pub rejected: Vec<&'a str>,
}

impl<'a> AfterUnknown<'a> {
    /// The names of this kind among all rules; `None` if there are none.
    pub(crate) fn of(spec: &'a CompiledSpec, rules: &[impl Borrow<Rule>]) -> Option<Self> {
        let rule = |name: &str| {
            rules
                .iter()
                .map(Borrow::borrow)
                .find(|it: &&Rule| *it.name == *name)
        };
        let named = |is_meant: fn(Option<&Rule>) -> bool| -> Vec<&'a str> {
            let names = spec.after.iter().map(|name| &**name);
            let is_meant = |name: &&str| is_meant(rule(name));
            names.filter(is_meant).collect()
        };
        let unknown = Self {
            missing: named(|rule| rule.is_none()),
            rejected: named(|rule| rule.is_some_and(|rule| rule.spec.is_err())),
        };
        (!unknown.missing.is_empty() || !unknown.rejected.is_empty()).then_some(unknown)
    }

    /// The reason in CamelCase, for a rule's status.
    pub(crate) fn reason(&self) -> &'static str {
        if self.missing.is_empty() {
            "RuleNotAccepted"
        } else {
            "NoSuchRule"
        }
    }
}

impl fmt::Display for AfterUnknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |names: &[&str]| enumerated(names.iter().map(|name| format!("'{name}'")));
        let (missing, rejected) = (listed(&self.missing), listed(&self.rejected));
        f.write_str("spec.after names rules that no node waits for: ")?;
        match (missing.as_str(), rejected.as_str()) {
            (missing, "") => write!(f, "there is no rule {missing}"),
            ("", rejected) => write!(f, "not accepted is rule {rejected}"),
            _ => write!(
                f,
                "there is no rule {missing}, and not accepted is rule {rejected}"
            ),
        }
    }
}
