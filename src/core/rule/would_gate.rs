//! How many nodes in use a rule would gate at once when it takes effect: what its author should know beforehand.

use std::collections::BTreeMap;
use std::fmt;

use crate::api::NodeShare;

/// This many nodes may be gated, however few are in use.
const ALWAYS: usize = 3;

/// How many of a rule's nodes are not held, and do not meet its conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WouldGate<'a> {
    pub gated: usize,
    /// Whether there may be fewer, because not every condition could be evaluated.
    pub at_most: bool,
    pub selected: usize,
    /// How many of them are in use: none of the rule's taint is on them, and they do not join just now.
    pub in_use: usize,
    /// The limit of what may be gated at once, if there is one.
    pub limit: Option<NodeShare>,
    /// On how many of these nodes each condition type is missing.
    missing: BTreeMap<&'a str, usize>,
}

impl<'a> WouldGate<'a> {
    /// No node yet, among this many.
    pub fn of(selected: usize) -> Self {
        Self {
            selected,
            ..Self::default()
        }
    }

    /// Counts as well so many nodes that were gated a moment ago, if there are any to gate now.
    #[must_use]
    pub fn after(mut self, gated: usize) -> Self {
        if self.gated > 0 {
            self.gated += gated;
            self.in_use += gated;
        }
        self
    }

    pub fn exceeds(&self, limit: NodeShare) -> bool {
        self.gated > limit.of(self.in_use).max(ALWAYS)
    }

    /// Why the rule gates none of these nodes, and how to go on, where this limit holds it back.
    pub fn held_back(&self, limit: NodeShare) -> String {
        let (gated, in_use, missing) = (self.gated, self.in_use, self.never_reported());
        let of = if in_use == 1 { "node" } else { "nodes" };
        format!(
            "would gate {gated} of {in_use} {of} in use at once{missing}; at most {limit} are allowed: fix the rule, or allow them \
             with spec.nodegate.disruption.maxFirstGated: 100% or the flag --max-first-gated"
        )
    }

    /// The condition that most of these nodes lack (of equals the first by name), in brackets after a blank.
    fn never_reported(&self) -> String {
        let missing = self.missing.iter();
        let most = missing.max_by(|(a, m), (b, n)| m.cmp(n).then(b.cmp(a)));
        most.map_or_else(String::new, |(kind, nodes)| {
            let have = if *nodes == 1 { "has" } else { "have" };
            format!(" ({nodes} {have} never reported {kind})")
        })
    }

    /// Counts a node, with the condition types that it lacks.
    pub fn add(&mut self, missing: impl IntoIterator<Item = &'a str>) {
        self.gated += 1;
        for kind in missing {
            *self.missing.entry(kind).or_default() += 1;
        }
    }
}

impl fmt::Display for WouldGate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gated, selected) = (self.gated, self.selected);
        let (are, they) = if gated == 1 {
            ("is", "it")
        } else {
            ("are", "they")
        };
        let (up_to, missing) = if self.at_most {
            ("up to ", " (pods and drivers are not looked at)".to_owned())
        } else {
            ("", self.never_reported())
        };
        write!(
            f,
            "{up_to}{gated} of {selected} selected nodes {are} unmet and not held{missing}: {they} would be gated at once"
        )?;
        match self.limit.filter(|limit| self.exceeds(*limit)) {
            Some(limit) => write!(
                f,
                ", but at most {limit} are allowed: the rule would be held back"
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_gated_a_moment_ago_counts_if_there_is_something_to_gate() {
        let ten = NodeShare::Nodes(10);
        for (gated, before, exceeds) in [(0, 11, false), (1, 9, false), (1, 10, true)] {
            let mut would_gate = WouldGate::of(20);
            (0..gated).for_each(|_| would_gate.add([]));
            assert_eq!(would_gate.after(before).exceeds(ten), exceeds);
        }
    }

    #[test]
    fn the_condition_is_named_that_most_nodes_have_never_reported() {
        let mut would_gate = WouldGate::of(5);
        would_gate.add([]);
        would_gate.add(["B", "A"]);
        would_gate.add(["A", "B"]);
        let counted = "3 of 5 selected nodes are unmet and not held";
        let they = "they would be gated at once";
        assert_eq!(
            would_gate.to_string(),
            format!("{counted} (2 have never reported A): {they}")
        );
        would_gate.at_most = true;
        assert_eq!(
            would_gate.to_string(),
            format!("up to {counted} (pods and drivers are not looked at): {they}")
        );
    }
}
