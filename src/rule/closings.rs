//! How many open nodes a rule would close at once when it takes effect: what its author should know beforehand.

use std::collections::BTreeMap;
use std::fmt;

/// How many of a rule's nodes are open with unmet conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closings<'a> {
    /// The number of these nodes.
    pub closed: usize,
    /// Whether there may be more, because not every condition could be evaluated.
    pub at_least: bool,
    /// The number of evaluated nodes.
    pub selected: usize,
    /// Whether there are more nodes that were not evaluated.
    pub more: bool,
    /// On how many of these nodes each condition type is missing.
    missing: BTreeMap<&'a str, usize>,
}

impl<'a> Closings<'a> {
    /// No closings yet, among this many nodes.
    pub fn of(selected: usize) -> Self {
        Self {
            selected,
            ..Self::default()
        }
    }

    /// Counts a node that would be closed, with the condition types that it lacks.
    pub fn close(&mut self, missing: impl IntoIterator<Item = &'a str>) {
        self.closed += 1;
        for kind in missing {
            *self.missing.entry(kind).or_default() += 1;
        }
    }
}

impl fmt::Display for Closings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.at_least { "at least " } else { "" };
        let first = if self.more { "the first " } else { "" };
        let (closed, selected) = (self.closed, self.selected);
        let (are, they) = if closed == 1 {
            ("is", "it")
        } else {
            ("are", "they")
        };
        write!(
            f,
            "{least}{closed} of {first}{selected} selected nodes {are} open and unmet now"
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
        write!(f, ": {they} would be closed at once")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_named_that_most_nodes_have_never_reported() {
        let mut closings = Closings::of(5);
        closings.close([]);
        assert_eq!(
            closings.to_string(),
            "1 of 5 selected nodes is open and unmet now: it would be closed at once"
        );
        closings.close(["B", "A"]);
        closings.close(["A", "B", "C"]);
        assert_eq!(
            closings.to_string(),
            "3 of 5 selected nodes are open and unmet now (2 have never reported A): they would be closed at once"
        );
        closings.close(["C"]);
        closings.close(["C"]);
        (closings.at_least, closings.more) = (true, true);
        assert_eq!(
            closings.to_string(),
            "at least 5 of the first 5 selected nodes are open and unmet now (3 have never reported C): they would be \
             closed at once"
        );
    }
}
