//! How many nodes a rule would gate at once when it takes effect: what its author should know beforehand.

use std::collections::BTreeMap;
use std::fmt;

/// How many of a rule's nodes are not held, and do not meet its conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WouldGate<'a> {
    /// The number of these nodes.
    pub gated: usize,
    /// Whether there may be more, because not every condition could be evaluated.
    pub at_least: bool,
    /// The number of evaluated nodes.
    pub selected: usize,
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
        let least = if self.at_least { "at least " } else { "" };
        let (gated, selected) = (self.gated, self.selected);
        let (are, they) = if gated == 1 {
            ("is", "it")
        } else {
            ("are", "they")
        };
        write!(
            f,
            "{least}{gated} of {selected} selected nodes {are} unmet and not held"
        )?;
        // Of several that are missing on equally many nodes, the first by name.
        let most = self
            .missing
            .iter()
            .max_by(|(a, m), (b, n)| m.cmp(n).then(b.cmp(a)));
        if let Some((kind, nodes)) = most {
            let have = if *nodes == 1 { "has" } else { "have" };
            write!(f, " ({nodes} {have} never reported {kind})")?;
        }
        write!(f, ": {they} would be gated at once")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_named_that_most_nodes_have_never_reported() {
        let mut would_gate = WouldGate::of(5);
        would_gate.add([]);
        assert_eq!(
            would_gate.to_string(),
            "1 of 5 selected nodes is unmet and not held: it would be gated at once"
        );
        would_gate.add(["B", "A"]);
        would_gate.add(["A", "B", "C"]);
        assert_eq!(
            would_gate.to_string(),
            "3 of 5 selected nodes are unmet and not held (2 have never reported A): they would be gated at once"
        );
        would_gate.add(["C"]);
        would_gate.add(["C"]);
        would_gate.at_least = true;
        assert_eq!(
            would_gate.to_string(),
            "at least 5 of 5 selected nodes are unmet and not held (3 have never reported C): they would be \
             gated at once"
        );
    }
}
